// The tile in plain C++: what the others are tested against, and what runs
// where none of them can.

#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {

void RunInt8TilePortable(const Int8Tile& tile, int rows) {
  // Unsigned, so that sums wrap.
  uint32_t sums[kInt8Columns];
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < kInt8Columns; ++c) {
      sums[c] = static_cast<uint32_t>(tile.start[c]) +
                static_cast<uint32_t>(tile.row_start[r]);
    }
    const int8_t* weights = tile.weights;
    for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
      const uint8_t* codes = tile.pixels[tap * rows + r];
      for (int64_t k = 0; k < tile.DepthOf(tap); k += kInt8Group) {
        for (int c = 0; c < kInt8Columns; ++c) {
          int32_t sum = 0;
          for (int i = 0; i < kInt8Group; ++i) {
            sum += int32_t{codes[k + i]} * weights[c * kInt8Group + i];
          }
          sums[c] += static_cast<uint32_t>(sum);
        }
        weights += kInt8Columns * kInt8Group;
      }
    }
    for (int c = 0; c < kInt8Columns; ++c) {
      tile.out[r * kInt8Columns + c] = static_cast<int32_t>(sums[c]);
    }
  }
}

}  // namespace optfarm::runtime
