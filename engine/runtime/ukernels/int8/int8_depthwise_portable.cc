// The depthwise tile in plain C++: what the others are tested against, and what
// runs where none of them can.

#include "engine/runtime/ukernels/int8/int8_depthwise.h"

namespace optfarm::runtime {

void RunInt8DepthwisePortable(const Int8DepthwiseTile& tile, int pixels) {
  const int groups = (tile.taps_y + kInt8Group - 1) / kInt8Group;
  // Unsigned, so that sums wrap.
  uint32_t sums[kInt8Columns];
  for (int p = 0; p < pixels; ++p) {
    for (int c = 0; c < kInt8Columns; ++c) {
      sums[c] = static_cast<uint32_t>(tile.start[c]);
    }
    for (int x = 0; x < tile.taps_x; ++x) {
      const int64_t column = tile.column + p * tile.stride + x * tile.dilation;
      const bool exists = column >= 0 && column < tile.width;
      for (int y = 0; y < tile.taps_y; ++y) {
        const int8_t* weights =
            tile.weights +
            (int64_t{x} * groups + y / kInt8Group) * kInt8ColumnBytes +
            y % kInt8Group;
        const int64_t set_bytes = tile.taps_x * groups * kInt8ColumnBytes;
        const uint8_t* codes = exists && tile.lines[y] != nullptr
                                   ? tile.lines[y] + column * tile.pixel_bytes
                                   : nullptr;
        for (int c = 0; c < tile.channels; ++c) {
          const int32_t code = codes == nullptr ? tile.padding : codes[c];
          for (int set = 0; set < tile.sets; ++set) {
            const int32_t weight = weights[set * set_bytes + c * kInt8Group];
            sums[c] +=
                static_cast<uint32_t>(code) * static_cast<uint32_t>(weight);
          }
        }
      }
    }
    for (int c = 0; c < kInt8Columns; ++c) {
      tile.out[p * kInt8Columns + c] = static_cast<int32_t>(sums[c]);
    }
  }
}

}  // namespace optfarm::runtime
