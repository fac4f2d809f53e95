// int8 GEMM with NEON as every Arm of the last fifteen years has it:
// activations and weights are widened to 16 bits and accumulated in 32, so that
// nothing can overflow and unsigned activations need no correction.

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_gemm_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;

struct Neon {
  static constexpr int kBandRows = 4;
#if defined(__aarch64__)
  static constexpr int kBandChannels = 16;
#else
  // Half as many registers.
  static constexpr int kBandChannels = 8;
#endif
  static constexpr int kVectors = kBandChannels / 8;

  // Accumulators of eight channels.
  struct Sums {
    int32x4_t low;
    int32x4_t high;
  };

  static OPTFARM_INLINE int16x4_t LoadGroup(const uint8_t* values) {
    uint32_t group;
    std::memcpy(&group, values, sizeof(group));
    const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(group));
    return vreinterpret_s16_u16(vget_low_u16(vmovl_u8(bytes)));
  }

  // One place of a group: kRows activations times eight channels.
  template <int kRows, int kPlace>
  static OPTFARM_INLINE void AddPlace(const int16x4_t* values, int8x8_t weights,
                                      Sums* sums) {
    const int16x8_t wide = vmovl_s8(weights);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      Sums& s = sums[r * kVectors];
      s.low = vmlal_lane_s16(s.low, vget_low_s16(wide), values[r], kPlace);
      s.high = vmlal_lane_s16(s.high, vget_high_s16(wide), values[r], kPlace);
    }
  }

  template <int kRows>
  static void Run(const Int8Band& band) {
    Sums sums[kRows * kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kRows * kVectors; ++i) {
      const int r = i / kVectors, c = i % kVectors * 8;
      sums[i] = {InitOf(band, r, c), InitOf(band, r, c + 4)};
    }
    const int8_t* weights = band.tile.weights + band.channel * kKr;
    for (int64_t tap = 0; tap < band.tile.all_taps(); ++tap) {
      const uint8_t* const* inputs = band.indirection(tap);
      for (int64_t k = 0; k < band.tile.DepthOf(tap, kKr); k += kKr) {
        int16x4_t values[kRows];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) values[r] = LoadGroup(inputs[r] + k);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          // By place, then by channel.
          const int8x8x4_t w = vld4_s8(weights + v * 8 * kKr);
          AddPlace<kRows, 0>(values, w.val[0], sums + v);
          AddPlace<kRows, 1>(values, w.val[1], sums + v);
          AddPlace<kRows, 2>(values, w.val[2], sums + v);
          AddPlace<kRows, 3>(values, w.val[3], sums + v);
        }
        weights += kNr * kKr;
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows * kVectors; ++i) {
      const int r = i / kVectors, c = i % kVectors * 8;
      StoreAt<kNr>(band, r, c, sums[i].low);
      StoreAt<kNr>(band, r, c + 4, sums[i].high);
    }
  }
};

}  // namespace

constexpr MicroKernel kInt8GemmNeon = {
    .name = "int8_gemm_neon",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.neon = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators,
    .run = {.int8_gemm = RunInt8Bands<Neon, kNr>},
};

}  // namespace optfarm::runtime
