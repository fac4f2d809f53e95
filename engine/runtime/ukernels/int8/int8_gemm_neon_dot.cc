// int8 GEMM with sdot, Arm's dot product of four signed bytes, on activations
// less 128.
//
// Sixteen values of a row are loaded at a time and multiplied lane by lane: 24
// registers hold sums, 6 activations and 2 weights.

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_gemm_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;

struct NeonDot {
  static constexpr int kBandRows = 6;
  static constexpr int kBandChannels = 16;
  static constexpr int kVectors = kBandChannels / 4;
  static constexpr int kGroups = 4;
  static constexpr int kStep = kNr * kKr;

  // Made anew each time: there is no register to keep it in.
  static OPTFARM_INLINE uint8x16_t Shift() {
    uint8x16_t shift;
    asm volatile("movi %0.16b, #0x80" : "=w"(shift));
    return shift;
  }
  static OPTFARM_INLINE int8x16_t Signed(uint8x16_t values, uint8x16_t shift) {
    return vreinterpretq_s8_u8(veorq_u8(values, shift));
  }

  template <int kRows>
  struct Sums {
    int32x4_t of[kRows][kVectors];
  };

  // In the order in which it is written (LoadTwo).
  template <int kGroup>
  static OPTFARM_INLINE void AddDot(int8x16_t weights, int8x16_t values,
                                    int32x4_t* sum) {
    asm volatile("sdot %0.4s, %1.16b, %2.4b[%c3]"
                 : "+w"(*sum)
                 : "w"(weights), "w"(values), "i"(kGroup));
  }

  // Group kGroup of the four in `values`, whose weights stand kPlace behind
  // `weights`.
  template <int kRows, int kGroup, int kPlace>
  static OPTFARM_INLINE void AddVectors(const int8x16_t* values,
                                        const int8_t* weights, int v,
                                        Sums<kRows>* sums) {
    int8x16_t low, high;
    LoadTwo<kPlace>(weights, &low, &high);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      AddDot<kGroup>(low, values[r], &sums->of[r][v]);
      AddDot<kGroup>(high, values[r], &sums->of[r][v + 1]);
    }
  }
  template <int kRows, int kGroup>
  static OPTFARM_INLINE void AddGroup(const int8x16_t* values,
                                      const int8_t* weights,
                                      Sums<kRows>* sums) {
    AddVectors<kRows, kGroup, kGroup * kStep>(values, weights, 0, sums);
    AddVectors<kRows, kGroup, kGroup * kStep + 32>(values, weights, 2, sums);
  }

  template <int kRows>
  static OPTFARM_INLINE void AddTap(const Int8Band& band, int64_t tap,
                                    const int8_t* weights, Sums<kRows>* sums) {
    constexpr int64_t kAtOnce = kGroups * kKr;
    const uint8_t* inputs[kRows];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) inputs[r] = band.indirection(tap)[r];
    const int64_t depth = band.tile.DepthOf(tap, kKr);
    int8x16_t values[kRows];
    int64_t k = 0;
    for (; k + kAtOnce <= depth; k += kAtOnce) {
      const uint8x16_t shift = Shift();
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        values[r] = Signed(vld1q_u8(inputs[r] + k), shift);
      }
      AddGroup<kRows, 0>(values, weights, sums);
      AddGroup<kRows, 1>(values, weights, sums);
      AddGroup<kRows, 2>(values, weights, sums);
      AddGroup<kRows, 3>(values, weights, sums);
      weights += kGroups * kStep;
    }
    for (; k < depth; k += kKr) {
      const uint8x16_t shift = Shift();
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        uint32_t group;
        std::memcpy(&group, inputs[r] + k, sizeof(group));
        values[r] = Signed(vreinterpretq_u8_u32(vdupq_n_u32(group)), shift);
      }
      AddGroup<kRows, 0>(values, weights, sums);
      weights += kStep;
    }
  }

  template <int kRows>
  OPTFARM_NOINLINE static void Run(const Int8Band& band) {
    if (IsBeyond(band)) return;
    Sums<kRows> sums;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums.of[r][v] = InitOf(band, r, 4 * v);
      }
    }
    const int8_t* weights = band.tile.weights + band.channel * kKr;
    for (int64_t tap = 0; tap < band.tile.all_taps(); ++tap) {
      KeepLoop(&tap);
      AddTap<kRows>(band, tap, weights, &sums);
      weights += band.tile.DepthOf(tap, kKr) * kNr;
    }
    EndBand<kNr>(band, sums.of, kRows);
  }
};

}  // namespace

constexpr MicroKernel kInt8GemmNeonDot = {
    .name = "int8_gemm_neon_dot",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.neon = true, .neon_dot = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .activation_shift = 128,
    .epilogue = kStoresAccumulators | kRequantizes,
    .run = {.int8_gemm = RunInt8Bands<NeonDot, kNr>},
};

}  // namespace optfarm::runtime
