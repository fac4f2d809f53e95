// AMX in plain C++: the intrinsics that engine/runtime/ukernels uses, with what
// Intel's manual (volume 2, LDTILECFG, TILELOADD, TILESTORED, TILERELEASE and
// TDPBUSD, and its table of AMX exception classes) says of each, fault by
// fault. Included before a kernel's source, it lets that source run on any
// processor.
//
// A fault ends the process, as it would there. Each thread has its own tiles.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_AMX_EMULATION_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_AMX_EMULATION_H_

// What it defines is replaced below.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace optfarm::runtime::amx {

// Palette 1.
inline constexpr int kTiles = 8, kMostRows = 16, kMostBytes = 64;

struct Tile {
  int rows = 0;
  int row_bytes = 0;
  uint8_t bytes[kMostRows][kMostBytes] = {};

  bool is_valid() const { return rows > 0; }
  uint32_t Dword(int row, int number) const {
    uint32_t value;
    std::memcpy(&value, bytes[row] + 4 * number, sizeof(value));
    return value;
  }
};

struct State {
  bool is_configured = false;
  Tile tiles[kTiles];
  // Of this thread, since it began.
  int64_t configurations = 0;
  int64_t products = 0;
  int64_t releases = 0;
};

inline State& OfThread() {
  static thread_local State state;
  return state;
}

[[noreturn]] inline void Fault(const char* instruction, const char* why) {
  std::fprintf(stderr, "AMX fault: %s: %s\n", instruction, why);
  std::abort();
}

inline bool IsZero(const uint8_t* bytes, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

// Bytes 0: palette, 1: first row of an interrupted instruction, 16 + 2 * n: row
// bytes of tile n, 48 + n: its rows; all others are zero.
inline void LoadConfig(const void* config) {
  uint8_t bytes[64];
  std::memcpy(bytes, config, sizeof(bytes));
  State& state = OfThread();
  ++state.configurations;
  for (Tile& tile : state.tiles) tile = {};
  state.is_configured = bytes[0] != 0;
  if (bytes[0] == 0) return;
  constexpr const char* kName = "ldtilecfg";
  if (bytes[0] != 1) Fault(kName, "there is no such palette");
  if (bytes[1] != 0) Fault(kName, "begins within a tile");
  if (!IsZero(bytes, 2, 16) || !IsZero(bytes, 32, 48) ||
      !IsZero(bytes, 56, 64)) {
    Fault(kName, "reserved bytes are not zero");
  }
  for (int n = 0; n < kTiles; ++n) {
    Tile& tile = state.tiles[n];
    tile.row_bytes = bytes[16 + 2 * n] + 256 * bytes[17 + 2 * n];
    tile.rows = bytes[48 + n];
    if (tile.row_bytes > kMostBytes) Fault(kName, "too many bytes in a row");
    if (tile.rows > kMostRows) Fault(kName, "too many rows");
    if ((tile.rows == 0) != (tile.row_bytes == 0)) {
      Fault(kName, "a tile has rows or row bytes alone");
    }
  }
}

inline void Release() {
  const uint8_t none[64] = {};
  LoadConfig(none);
  --OfThread().configurations;
  ++OfThread().releases;
}

inline Tile& TileOf(const char* instruction, int number) {
  State& state = OfThread();
  if (!state.is_configured) Fault(instruction, "tiles are not configured");
  if (number < 0 || number >= kTiles) Fault(instruction, "no such tile");
  if (!state.tiles[number].is_valid()) Fault(instruction, "tile without rows");
  return state.tiles[number];
}

// Rows and bytes beyond the configured ones become zero.
inline void Load(int number, const void* base, int64_t stride) {
  Tile& tile = TileOf("tileloadd", number);
  std::memset(tile.bytes, 0, sizeof(tile.bytes));
  for (int r = 0; r < tile.rows; ++r) {
    std::memcpy(tile.bytes[r], static_cast<const uint8_t*>(base) + r * stride,
                static_cast<size_t>(tile.row_bytes));
  }
}

inline void Store(int number, void* base, int64_t stride) {
  const Tile& tile = TileOf("tilestored", number);
  for (int r = 0; r < tile.rows; ++r) {
    std::memcpy(static_cast<uint8_t*>(base) + r * stride, tile.bytes[r],
                static_cast<size_t>(tile.row_bytes));
  }
}

inline void CheckShapes(const char* name, const Tile& sums, const Tile& a,
                        const Tile& b) {
  if (sums.rows != a.rows) Fault(name, "rows of sums and of the first differ");
  if (sums.row_bytes != b.row_bytes) {
    Fault(name, "row bytes of sums and of the second differ");
  }
  if (a.row_bytes % 4 != 0 || b.row_bytes % 4 != 0) {
    Fault(name, "row bytes are no groups of four");
  }
  if (a.row_bytes / 4 != b.rows) {
    Fault(name, "groups of the first are not rows of the second");
  }
}

// tdpbusd (Left: uint8_t, Right: int8_t) and its kin. Sums wrap.
template <typename Left, typename Right>
void MultiplyBytes(const char* name, int sums_number, int a_number,
                   int b_number) {
  if (sums_number == a_number || sums_number == b_number ||
      a_number == b_number) {
    Fault(name, "one tile stands twice");
  }
  Tile& sums = TileOf(name, sums_number);
  const Tile &a = TileOf(name, a_number), &b = TileOf(name, b_number);
  CheckShapes(name, sums, a, b);
  ++OfThread().products;
  for (int m = 0; m < sums.rows; ++m) {
    for (int n = 0; n < sums.row_bytes / 4; ++n) {
      uint32_t sum = sums.Dword(m, n);
      for (int k = 0; k < a.row_bytes / 4; ++k) {
        for (int i = 0; i < 4; ++i) {
          const int left = static_cast<Left>(a.bytes[m][4 * k + i]);
          const int right = static_cast<Right>(b.bytes[k][4 * n + i]);
          sum += static_cast<uint32_t>(left * right);
        }
      }
      std::memcpy(sums.bytes[m] + 4 * n, &sum, sizeof(sum));
    }
  }
  // As instructions that write a tile do.
  for (int m = sums.rows; m < kMostRows; ++m) {
    std::memset(sums.bytes[m], 0, kMostBytes);
  }
}

}  // namespace optfarm::runtime::amx

// The names that kernels' sources call.
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbusd
#define _tile_loadconfig(config) ::optfarm::runtime::amx::LoadConfig(config)
#define _tile_release() ::optfarm::runtime::amx::Release()
#define _tile_loadd(tile, base, stride) \
  ::optfarm::runtime::amx::Load(tile, base, stride)
#define _tile_stored(tile, base, stride) \
  ::optfarm::runtime::amx::Store(tile, base, stride)
#define _tile_dpbusd(sums, a, b) \
  ::optfarm::runtime::amx::MultiplyBytes<uint8_t, int8_t>("tdpbusd", sums, a, b)

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_AMX_EMULATION_H_
