// The GEMM micro-kernel in plain C++: what runs where no other can.

#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;

void RunInt8Gemm(const Int8GemmTile& tile, int rows) {
  // Unsigned, so that sums wrap.
  uint32_t sums[kNr];
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < kNr; ++c) {
      sums[c] = static_cast<uint32_t>(tile.init[c]) +
                static_cast<uint32_t>(tile.row_init[r]);
    }
    const int8_t* weights = tile.weights;
    for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
      const uint8_t* values = tile.indirection[tap * rows + r];
      for (int64_t k = 0; k < tile.DepthOf(tap, kKr); k += kKr) {
        for (int c = 0; c < kNr; ++c) {
          int32_t sum = 0;
          for (int i = 0; i < kKr; ++i) {
            sum += int32_t{values[k + i]} * weights[c * kKr + i];
          }
          sums[c] += static_cast<uint32_t>(sum);
        }
        weights += kNr * kKr;
      }
    }
    for (int c = 0; c < kNr; ++c) {
      tile.out[r * kNr + c] = static_cast<int32_t>(sums[c]);
    }
  }
}

}  // namespace

constexpr MicroKernel kInt8GemmPortable = {
    .name = "int8_gemm_portable",
    .kind = MicroKernelKind::kInt8Gemm,
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators,
    .run = {.int8_gemm = RunInt8Gemm},
};

}  // namespace optfarm::runtime
