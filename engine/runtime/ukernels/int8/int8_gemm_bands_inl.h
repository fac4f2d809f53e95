// Walks a tile in bands of as many rows and channels as the registers hold
// accumulators for. For files that are compiled for one instruction set; each
// has its own copy.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_BANDS_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_BANDS_INL_H_

#include <cstdint>
#include <cstring>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_gemm.h"

namespace optfarm::runtime {
namespace {

// Part of a tile: rows from `row` on, channels from `channel` on.
struct Int8Band {
  const Int8GemmTile& tile;
  // Rows of the whole tile.
  int rows = 0;
  int row = 0;
  int channel = 0;
  // nr values for what the bands of one tile share, by channel of the tile.
  // Bands of the first rows come first.
  int32_t* shared = nullptr;

  OPTFARM_INLINE const uint8_t* const* indirection(int64_t tap) const {
    return tile.indirection + tap * rows + row;
  }
  // Of tiles whose activations are packed: bands lie one behind the other.
  OPTFARM_INLINE uint8_t* packed() const {
    return tile.packed + row * tile.packed_stride;
  }
};

// Isa has kBandRows, kBandChannels and
//   template <int kRows> static void Run(const Int8Band& band)
template <typename Isa, int kRows>
void RunInt8Band(const Int8Band& band, int rows) {
  if (rows == kRows) {
    Isa::template Run<kRows>(band);
  } else if constexpr (kRows > 1) {
    RunInt8Band<Isa, kRows - 1>(band, rows);
  }
}

// MicroKernel::pack, for an Isa with
//   template <int kRows> static void Pack(const Int8Band& band, int64_t tap)
template <typename Isa, int kRows>
void PackInt8Band(const Int8Band& band, int rows, int64_t first_tap) {
  if (rows == kRows) {
    Isa::template Pack<kRows>(band, first_tap);
  } else if constexpr (kRows > 1) {
    PackInt8Band<Isa, kRows - 1>(band, rows, first_tap);
  }
}

template <typename Isa>
void PackInt8Bands(const Int8GemmTile& tile, int rows, int64_t first_tap) {
  for (int row = 0; row < rows; row += Isa::kBandRows) {
    const int count = rows - row < Isa::kBandRows ? rows - row : Isa::kBandRows;
    PackInt8Band<Isa, Isa::kBandRows>({tile, rows, row}, count, first_tap);
  }
}

// Bands without a channel that exists are not computed.
template <typename Isa, int kNr>
void RunInt8Bands(const Int8GemmTile& tile, int rows) {
  int32_t shared[kNr];
  int channels = kNr;
  if constexpr (Isa::kBandChannels < kNr) {
    while (channels - Isa::kBandChannels >= tile.channels) {
      channels -= Isa::kBandChannels;
    }
    const bool is_stored = channels < kNr && tile.epilogue == nullptr;
    for (int row = 0; is_stored && row < rows; ++row) {
      std::memset(tile.out + row * kNr + channels, 0,
                  sizeof(int32_t) * (kNr - channels));
    }
  }
  for (int row = 0; row < rows; row += Isa::kBandRows) {
    const int count = rows - row < Isa::kBandRows ? rows - row : Isa::kBandRows;
    for (int c = 0; c < channels; c += Isa::kBandChannels) {
      RunInt8Band<Isa, Isa::kBandRows>({tile, rows, row, c, shared}, count);
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_BANDS_INL_H_
