// The depthwise micro-kernel in plain C++: what runs where no other can.

#include "engine/runtime/ukernels/int8/int8_depthwise.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;
constexpr int64_t kGroupBytes = int64_t{kNr} * kKr;

void RunInt8Depthwise(const Int8DepthwiseTile& tile, int pixels) {
  const int groups = (tile.taps_y + kKr - 1) / kKr;
  // Unsigned, so that sums wrap.
  uint32_t sums[kNr];
  for (int p = 0; p < pixels; ++p) {
    for (int c = 0; c < kNr; ++c) {
      sums[c] = static_cast<uint32_t>(tile.init[c]);
    }
    for (int x = 0; x < tile.taps_x; ++x) {
      const int64_t column = tile.column + p * tile.stride + x * tile.dilation;
      const bool exists = column >= 0 && column < tile.width;
      for (int y = 0; y < tile.taps_y; ++y) {
        const int8_t* weights = tile.weights +
                                (int64_t{x} * groups + y / kKr) * kGroupBytes +
                                y % kKr;
        const int64_t set_bytes = tile.taps_x * groups * kGroupBytes;
        const uint8_t* values = exists && tile.rows[y] != nullptr
                                    ? tile.rows[y] + column * tile.pixel_bytes
                                    : nullptr;
        for (int c = 0; c < tile.channels; ++c) {
          const int32_t value = values == nullptr ? tile.padding : values[c];
          for (int set = 0; set < tile.sets; ++set) {
            const int32_t weight = weights[set * set_bytes + c * kKr];
            sums[c] +=
                static_cast<uint32_t>(value) * static_cast<uint32_t>(weight);
          }
        }
      }
    }
    for (int c = 0; c < kNr; ++c) {
      tile.out[p * kNr + c] = static_cast<int32_t>(sums[c]);
    }
  }
}

}  // namespace

constexpr MicroKernel kInt8DepthwisePortable = {
    .name = "int8_depthwise_portable",
    .kind = MicroKernelKind::kInt8Depthwise,
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators,
    .run = {.int8_depthwise = RunInt8Depthwise},
};

}  // namespace optfarm::runtime
