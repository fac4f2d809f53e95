// int8 GEMM with sdot, Arm's dot product of four signed bytes. Activations are
// unsigned: the kernel subtracts 128 from them, and adds 128 times the sum of
// each channel's weights, which the first band of rows finds.

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_gemm_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;

struct NeonDot {
  static constexpr int kBandRows = 6;
  static constexpr int kBandChannels = 8;
  static constexpr int kGroups = 4;

  static OPTFARM_INLINE int8x16_t Signed(uint8x16_t values) {
    return vreinterpretq_s8_u8(veorq_u8(values, vdupq_n_u8(0x80)));
  }

  template <int kRows>
  struct Sums {
    int32x4_t of[kRows][2];
    // Of -128 times the weights.
    int32x4_t common[2];
  };

  // Group kGroup of the four in `values`.
  template <int kRows, bool kIsFirst, int kGroup>
  static OPTFARM_INLINE void AddGroup(const int8x16_t* values,
                                      const int8_t* weights,
                                      Sums<kRows>* sums) {
    const int8x16_t low = vld1q_s8(weights);
    const int8x16_t high = vld1q_s8(weights + 16);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      sums->of[r][0] = vdotq_laneq_s32(sums->of[r][0], low, values[r], kGroup);
      sums->of[r][1] = vdotq_laneq_s32(sums->of[r][1], high, values[r], kGroup);
    }
    if constexpr (kIsFirst) {
      const int8x16_t shift = vdupq_n_s8(-128);
      sums->common[0] = vdotq_s32(sums->common[0], low, shift);
      sums->common[1] = vdotq_s32(sums->common[1], high, shift);
    }
  }

  template <int kRows, bool kIsFirst>
  static OPTFARM_INLINE void AddTap(const Int8Band& band, int64_t tap,
                                    const int8_t* weights, Sums<kRows>* sums) {
    constexpr int64_t kStep = kNr * kKr;
    constexpr int64_t kAtOnce = kGroups * kKr;
    const uint8_t* inputs[kRows];
    for (int r = 0; r < kRows; ++r) inputs[r] = band.indirection(tap)[r];
    const int64_t depth = band.tile.DepthOf(tap, kKr);
    int8x16_t values[kRows];
    int64_t k = 0;
    for (; k + kAtOnce <= depth; k += kAtOnce) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r)
        values[r] = Signed(vld1q_u8(inputs[r] + k));
      AddGroup<kRows, kIsFirst, 0>(values, weights, sums);
      AddGroup<kRows, kIsFirst, 1>(values, weights + kStep, sums);
      AddGroup<kRows, kIsFirst, 2>(values, weights + 2 * kStep, sums);
      AddGroup<kRows, kIsFirst, 3>(values, weights + 3 * kStep, sums);
      weights += kGroups * kStep;
    }
    for (; k < depth; k += kKr) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        uint32_t group;
        std::memcpy(&group, inputs[r] + k, sizeof(group));
        values[r] = Signed(vreinterpretq_u8_u32(vdupq_n_u32(group)));
      }
      AddGroup<kRows, kIsFirst, 0>(values, weights, sums);
      weights += kStep;
    }
  }

  template <int kRows>
  static void Run(const Int8Band& band) {
    if (band.row == 0) {
      RunAs<kRows, true>(band);
    } else {
      RunAs<kRows, false>(band);
    }
  }

  template <int kRows, bool kIsFirst>
  static void RunAs(const Int8Band& band) {
    Sums<kRows> sums;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      sums.of[r][0] = InitOf(band, r, 0);
      sums.of[r][1] = InitOf(band, r, 4);
    }
    int32_t* common = band.shared + band.channel;
    sums.common[0] = sums.common[1] = vdupq_n_s32(0);
    const int8_t* weights = band.tile.weights + band.channel * kKr;
    for (int64_t tap = 0; tap < band.tile.all_taps(); ++tap) {
      AddTap<kRows, kIsFirst>(band, tap, weights, &sums);
      weights += band.tile.DepthOf(tap, kKr) * kNr;
    }
    if constexpr (kIsFirst) {
      vst1q_s32(common, sums.common[0]);
      vst1q_s32(common + 4, sums.common[1]);
    } else {
      sums.common[0] = vld1q_s32(common);
      sums.common[1] = vld1q_s32(common + 4);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      StoreAt<kNr>(band, r, 0, vsubq_s32(sums.of[r][0], sums.common[0]));
      StoreAt<kNr>(band, r, 4, vsubq_s32(sums.of[r][1], sums.common[1]));
    }
  }
};

}  // namespace

constexpr MicroKernel kInt8GemmNeonDot = {
    .name = "int8_gemm_neon_dot",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.neon = true, .neon_dot = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators,
    .run = {.int8_gemm = RunInt8Bands<NeonDot, kNr>},
};

}  // namespace optfarm::runtime
