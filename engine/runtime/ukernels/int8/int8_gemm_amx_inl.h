// int8 GEMM by AMX: tiles of 32 rows x 32 channels as 2 x 2 of the processor's
// tile registers, 64 values of the depth at a time.
//
// Whoever includes it has to
//   - define the intrinsics _tile_loadconfig, _tile_release, _tile_loadd,
//     _tile_dpbusd and _tile_stored beforehand: <immintrin.h> for the
//     processor, or tests/engine/runtime/amx_emulation.h;
//   - define RequantizeRows.
// Each file has its own copy.
//
// Facts of the instructions that this relies on (Intel's manual, volume 2):
//   - tdpbusd adds to dword n of row m of the sums, over all k, the four
//     products of the unsigned bytes of dword k of row m of the activations and
//     the signed bytes of dword n of row k of the weights. That is kr = 4.
//   - Row r of a load or store lies r * stride bytes behind the address; a
//     stride of 0 loads the same row each time.
//   - Registers with fewer rows read and write no more memory than those, and
//     the rows of sums and activations must be equally many.
//   - Configuring sets all registers to zero. vzeroupper, system calls and
//     signals leave them as they are. They belong to a thread.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_AMX_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_AMX_INL_H_

#include <cstdint>
#include <cstring>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

// Runs an epilogue over rows of kAmxNr accumulators, 64-byte aligned.
void RequantizeRows(const Int8Epilogue& by, const int32_t* sums, int rows);

// Rows and bytes of a register.
constexpr int kAmxRows = 16, kAmxBytes = 64;
constexpr int kAmxMr = 2 * kAmxRows, kAmxNr = 32, kAmxKr = 4;
// Bytes between the groups of a panel: those of all channels.
constexpr int64_t kAmxGroupBytes = kAmxNr * kAmxKr;
// Bytes of a panel that one block of the depth takes.
constexpr int64_t kAmxBlockWeights = kAmxNr * kAmxBytes;
constexpr int64_t kAmxOutBytes = kAmxNr * sizeof(int32_t);

// What ldtilecfg reads.
struct AmxConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(AmxConfig) == 64);

// Registers 0 and 1: sums of the upper rows, by half of the channels; 2 and 3:
// of the lower rows; 4 and 5: activations; 6 and 7: weights. The intrinsics
// want literal numbers.
alignas(64) constexpr AmxConfig kAmxWholeTiles = {
    .palette = 1,
    .start_row = 0,
    .reserved = {},
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

// Compilers do not know that loads of tiles and of configurations read memory:
// all that was written before is to be there.
OPTFARM_INLINE void AmxSeeMemory() { asm volatile("" : : : "memory"); }

void BeginAmx() { _tile_loadconfig(&kAmxWholeTiles); }

void EndAmx() { _tile_release(); }

// For a tile with fewer rows than a register has.
OPTFARM_INLINE void ConfigureFewRows(int rows) {
  alignas(64) AmxConfig config = kAmxWholeTiles;
  config.rows[0] = config.rows[1] = config.rows[4] = static_cast<uint8_t>(rows);
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

// One piece of a row's depth, from block to block.
struct AmxRows {
  const uint8_t* first = nullptr;
  // UNITS: bytes.
  int64_t row_step = 0;
  int64_t block_step = 0;
  int64_t blocks = 0;
};

// Memory that is read soon, fetched in the steps that Int8GemmTile describes.
class AmxPrefetch {
 public:
  OPTFARM_INLINE explicit AmxPrefetch(const Int8GemmTile& tile)
      : at_(tile.prefetch != nullptr ? tile.prefetch : tile.weights),
        step_(2 * tile.prefetch_step),
        is_wanted_(tile.prefetch != nullptr) {}
  OPTFARM_INLINE void Block() {
    if (!is_wanted_) return;
    for (int group = 0; group < kAmxBytes / kAmxKr; group += 2) {
      __builtin_prefetch(at_, 0, 2);
      at_ += step_;
    }
  }

 private:
  const int8_t* at_;
  int64_t step_;
  bool is_wanted_;
};

// `lower`: the row where the lower registers begin. Where they would reach
// beyond the tile they begin earlier, and compute rows of the upper ones again:
// a register of few rows takes as long as one of all.
template <bool kHasLower, bool kHasRight>
struct AmxTile {
  static OPTFARM_INLINE void Begin(const Int8GemmTile& tile) {
    _tile_loadd(0, tile.init, 0);
    if constexpr (kHasRight) _tile_loadd(1, tile.init + 16, 0);
    if constexpr (kHasLower) _tile_loadd(2, tile.init, 0);
    if constexpr (kHasLower && kHasRight) _tile_loadd(3, tile.init + 16, 0);
  }

  static OPTFARM_INLINE void AddBlocks(const AmxRows& rows, int lower,
                                       const int8_t** weights,
                                       AmxPrefetch* prefetch) {
    const uint8_t* values = rows.first;
    for (int64_t block = 0; block < rows.blocks; ++block) {
      _tile_loadd(4, values, rows.row_step);
      _tile_loadd(6, *weights, kAmxGroupBytes);
      _tile_dpbusd(0, 4, 6);
      if constexpr (kHasRight) {
        _tile_loadd(7, *weights + kAmxBytes, kAmxGroupBytes);
        _tile_dpbusd(1, 4, 7);
      }
      if constexpr (kHasLower) {
        _tile_loadd(5, values + lower * rows.row_step, rows.row_step);
        _tile_dpbusd(2, 5, 6);
        if constexpr (kHasRight) _tile_dpbusd(3, 5, 7);
      }
      prefetch->Block();
      values += rows.block_step;
      *weights += kAmxBlockWeights;
    }
  }

  static OPTFARM_INLINE void Multiply(const Int8GemmTile& tile, int rows,
                                      int lower) {
    AmxPrefetch prefetch(tile);
    const int8_t* weights = tile.weights;
    if (tile.activation_stride == 0) {
      const int64_t depth = tile.WholeDepth(kAmxKr);
      AddBlocks({tile.packed, kAmxBytes, kAmxMr * kAmxBytes,
                 (depth + kAmxBytes - 1) / kAmxBytes},
                lower, &weights, &prefetch);
      return;
    }
    const int64_t blocks = (tile.depth + kAmxBytes - 1) / kAmxBytes;
    for (int64_t tap = 0; tap < tile.taps; ++tap) {
      AddBlocks({tile.indirection[tap * rows], tile.activation_stride,
                 kAmxBytes, blocks},
                lower, &weights, &prefetch);
    }
  }

  static OPTFARM_INLINE void Store(int lower, int32_t* out) {
    _tile_stored(0, out, kAmxOutBytes);
    if constexpr (kHasRight) _tile_stored(1, out + 16, kAmxOutBytes);
    if constexpr (kHasLower) {
      int32_t* below = out + lower * kAmxNr;
      _tile_stored(2, below, kAmxOutBytes);
      if constexpr (kHasRight) _tile_stored(3, below + 16, kAmxOutBytes);
    }
  }

  static void Run(const Int8GemmTile& tile, int rows) {
    alignas(64) int32_t scratch[kAmxMr * kAmxNr];
    int32_t* out = tile.epilogue != nullptr ? scratch : tile.out;
    const int lower = rows - kAmxRows;
    AmxSeeMemory();
    Begin(tile);
    Multiply(tile, rows, lower);
    Store(lower, out);
    for (int r = 0; !kHasRight && r < rows; ++r) {
      std::memset(out + r * kAmxNr + 16, 0, sizeof(int32_t) * 16);
    }
    if (tile.has_row_init) AddRowInit(tile, rows, out);
    if (tile.epilogue != nullptr) RequantizeRows(*tile.epilogue, out, rows);
  }

  static OPTFARM_INLINE void AddRowInit(const Int8GemmTile& tile, int rows,
                                        int32_t* out) {
    for (int r = 0; r < rows; ++r) {
      const auto of_row = static_cast<uint32_t>(tile.row_init[r]);
      for (int c = 0; c < (kHasRight ? kAmxNr : kAmxNr / 2); ++c) {
        out[c] = static_cast<int32_t>(static_cast<uint32_t>(out[c]) + of_row);
      }
      out += kAmxNr;
    }
  }
};

template <bool kHasLower>
OPTFARM_INLINE void RunAmxRows(const Int8GemmTile& tile, int rows) {
  if (tile.channels > kAmxNr / 2) {
    AmxTile<kHasLower, true>::Run(tile, rows);
  } else {
    AmxTile<kHasLower, false>::Run(tile, rows);
  }
}

// REQUIRES: BeginAmx on this thread.
void RunInt8GemmAmx(const Int8GemmTile& tile, int rows) {
  if (rows > kAmxRows) return RunAmxRows<true>(tile, rows);
  if (rows == kAmxRows) return RunAmxRows<false>(tile, rows);
  ConfigureFewRows(rows);
  RunAmxRows<false>(tile, rows);
  BeginAmx();
}

// Packed rows: block by block of the depth, the blocks of all kAmxMr rows
// together, so that a register is loaded from lines that follow one another.
// What fills up the last block meets weights that are zero.
OPTFARM_INLINE uint8_t* AmxPlace(const Int8GemmTile& tile, int row,
                                 int64_t depth) {
  return tile.packed + (depth / kAmxBytes * kAmxMr + row) * kAmxBytes +
         depth % kAmxBytes;
}

// A multiple of kr values.
OPTFARM_INLINE void CopyAmxGroups(const uint8_t* from, int64_t count,
                                  uint8_t* to) {
  for (; count >= 16; count -= 16, from += 16, to += 16) {
    std::memcpy(to, from, 16);
  }
  for (; count > 0; count -= kAmxKr, from += kAmxKr, to += kAmxKr) {
    std::memcpy(to, from, kAmxKr);
  }
}

OPTFARM_INLINE void CopyAmxPiece(const Int8GemmTile& tile, int row,
                                 const uint8_t* from, int64_t begin,
                                 int64_t count) {
  while (count > 0) {
    const int64_t room = kAmxBytes - begin % kAmxBytes;
    uint8_t* to = AmxPlace(tile, row, begin);
    if (count >= kAmxBytes && room == kAmxBytes) {
      std::memcpy(to, from, kAmxBytes);
    } else {
      CopyAmxGroups(from, count < room ? count : room, to);
    }
    begin += room;
    from += room;
    count -= room;
  }
}

void PackInt8RowsAmx(const Int8GemmTile& tile, int rows, int64_t first_tap) {
  int64_t begin = first_tap * tile.depth;
  for (int64_t tap = first_tap; tap < tile.all_taps(); ++tap) {
    const int64_t depth = tile.DepthOf(tap, kAmxKr);
    const uint8_t* const* inputs = tile.indirection + tap * rows;
    for (int r = 0; r < rows; ++r) {
      CopyAmxPiece(tile, r, inputs[r], begin, depth);
    }
    begin += depth;
  }
}

// The entry, but for what it needs.
constexpr MicroKernel AmxInt8Gemm(const char* name) {
  return {
      .name = name,
      .kind = MicroKernelKind::kInt8MatrixGemm,
      .begin = BeginAmx,
      .end = EndAmx,
      .mr = kAmxMr,
      .panel = {.nr = kAmxNr, .kr = kAmxKr, .depth_multiple = kAmxBytes},
      .activations = ActivationLayout::kStrided,
      .pack = PackInt8RowsAmx,
      .epilogue = kStoresAccumulators | kRequantizes,
      .run = {.int8_gemm = RunInt8GemmAmx},
  };
}

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_AMX_INL_H_
