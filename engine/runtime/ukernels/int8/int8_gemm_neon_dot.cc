// int8 GEMM with sdot, Arm's dot product of four signed bytes, on activations
// less 128.
//
// Sixteen values of a row are loaded at a time and multiplied lane by lane: 24
// registers hold sums, 6 activations and 2 weights. Rows are made signed, and
// laid side by side, once for all panels.

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

  // Group kGroup of the four in `values`, two vectors of weights at a time. The
  // last that are loaded, those of the first group, move `weights` on.
  template <int kRows, int kGroup, int kVector>
  static OPTFARM_INLINE void AddVectors(const int8x16_t (&values)[kRows],
                                        const int8_t** weights,
                                        Sums<kRows>* sums) {
    int8x16_t low, high;
    if constexpr (kGroup == 0 && kVector == 0) {
      LoadTwoAndMove<kGroups * kStep>(weights, &low, &high);
    } else {
      LoadTwo<kGroup * kStep + kVector * 16>(*weights, &low, &high);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      AddDot<kGroup>(low, values[r], &sums->of[r][kVector]);
      AddDot<kGroup>(high, values[r], &sums->of[r][kVector + 1]);
    }
  }
  template <int kRows, int kGroup>
  static OPTFARM_INLINE void AddGroup(const int8x16_t (&values)[kRows],
                                      const int8_t** weights,
                                      Sums<kRows>* sums) {
    AddVectors<kRows, kGroup, 2>(values, weights, sums);
    AddVectors<kRows, kGroup, 0>(values, weights, sums);
  }

  template <int kRows>
  static OPTFARM_INLINE void AddAll(const Int8Band& band, Sums<kRows>* sums) {
    const int8_t* weights = band.tile.weights + band.channel * kKr;
    const auto* packed = reinterpret_cast<const int8_t*>(band.packed());
    const int64_t depth = band.tile.WholeDepth(kKr);
    const int8_t* const end = packed + depth / kChunk * kChunk * kRows;
    int8x16_t values[kRows];
    while (packed != end) {
      LoadVectors(&packed, values);
      AddGroup<kRows, 3>(values, &weights, sums);
      AddGroup<kRows, 2>(values, &weights, sums);
      AddGroup<kRows, 1>(values, &weights, sums);
      AddGroup<kRows, 0>(values, &weights, sums);
    }
    const int64_t groups = depth % kChunk / kKr;
    if (groups == 0) return;
    LoadVectors(&packed, values);
    if (groups > 2) AddGroup<kRows, 2>(values, &weights, sums);
    if (groups > 1) AddGroup<kRows, 1>(values, &weights, sums);
    AddGroup<kRows, 0>(values, &weights, sums);
  }

  template <int kRows>
  static void Pack(const Int8Band& band, int64_t first_tap) {
    PackSigned<kKr, kRows>(band, first_tap);
  }

  template <int kRows>
  OPTFARM_NOINLINE static void Run(const Int8Band& band) {
    if (IsBeyond(band)) return;
    Sums<kRows> sums;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int32x4_t init = vld1q_s32(band.tile.init + band.channel + 4 * v);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) sums.of[r][v] = init;
    }
    if (band.tile.has_row_init) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) AddRowInit(band, r, sums.of[r]);
    }
    AddAll(band, &sums);
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
    .activations = ActivationLayout::kPacked,
    .pack = PackInt8Bands<NeonDot>,
    .activation_shift = 128,
    .epilogue = kStoresAccumulators | kRequantizes,
    .run = {.int8_gemm = RunInt8Bands<NeonDot, kNr>},
};

}  // namespace optfarm::runtime
