// Tiles of 6 rows by 16 columns on 64-bit ARM, of 4 by 8 on 32-bit ARM, which
// has half as many registers.
//
// Four inputs of a row are loaded at a time and multiplied lane by lane: 24
// registers hold sums, 6 inputs and 2 weights, and 14 loads serve 96 products.
// Nothing is prefetched: weights are read in the order in which they stand,
// which these processors find out by themselves.

#include "engine/runtime/ukernels/float/float_tile.h"
#include "engine/runtime/ukernels/float/float_tile_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "engine/runtime/ukernels/vector_neon_inl.h"

namespace optfarm::runtime {
namespace {

#if defined(__aarch64__)
constexpr int kRows = 6, kVectors = 4;
#else
constexpr int kRows = 4, kVectors = 2;
#endif
constexpr int kWidth = kVectors * Neon::kLanes;
// Steps along the depth that one load of a row's inputs is for.
constexpr int kSteps = Neon::kLanes;

// Instructions in the order in which they are written: compilers load more at a
// time than there are registers for, and copy lanes into whole registers first.
#if defined(__aarch64__)
OPTFARM_INLINE void LoadTwo(const float** weights, float32x4_t* low,
                            float32x4_t* high) {
  asm volatile("ldp %q0, %q1, [%2], #32"
               : "=w"(*low), "=w"(*high), "+r"(*weights)
               :
               : "memory");
}
template <int kLane>
OPTFARM_INLINE void AddLane(float32x4_t weights, float32x4_t inputs,
                            float32x4_t* sum) {
  asm volatile("fmla %0.4s, %1.4s, %2.s[%c3]"
               : "+w"(*sum)
               : "w"(weights), "w"(inputs), "i"(kLane));
}
template <int kPlace>
OPTFARM_INLINE void LoadResidual(const float* from, float32x4_t* low,
                                 float32x4_t* high) {
  asm volatile("ldp %q0, %q1, [%2, %c3]"
               : "=w"(*low), "=w"(*high)
               : "r"(from), "i"(kPlace)
               : "memory");
}
template <int kPlace>
OPTFARM_INLINE void StoreTwo(float* to, float32x4_t low, float32x4_t high) {
  asm volatile("stp %q0, %q1, [%2, %c3]"
               :
               : "w"(low), "w"(high), "r"(to), "i"(kPlace)
               : "memory");
}
// Neon::Relu where the sums stand: compilers copy all of them.
OPTFARM_INLINE void RectifyTwo(float32x4_t* low, float32x4_t* high) {
  float32x4_t is_low_negative, is_high_negative;
  asm("fcmlt %2.4s, %0.4s, #0.0\n"
      "fcmlt %3.4s, %1.4s, #0.0\n"
      "bic %0.16b, %0.16b, %2.16b\n"
      "bic %1.16b, %1.16b, %3.16b"
      : "+w"(*low), "+w"(*high), "=&w"(is_low_negative),
        "=&w"(is_high_negative));
}
OPTFARM_INLINE void CapTwo(float32x4_t six, float32x4_t* low,
                           float32x4_t* high) {
  asm("fmin %0.4s, %0.4s, %2.4s\n"
      "fmin %1.4s, %1.4s, %2.4s"
      : "+w"(*low), "+w"(*high)
      : "w"(six));
}
#else
OPTFARM_INLINE void LoadTwo(const float** weights, float32x4_t* low,
                            float32x4_t* high) {
  *low = vld1q_f32(*weights);
  *high = vld1q_f32(*weights + Neon::kLanes);
  *weights += 2 * Neon::kLanes;
}
template <int kLane>
OPTFARM_INLINE void AddLane(float32x4_t weights, float32x4_t inputs,
                            float32x4_t* sum) {
  *sum = vfmaq_f32(*sum, weights, vdupq_n_f32(vgetq_lane_f32(inputs, kLane)));
}
#endif

// A tile that stores all of its columns.
template <int kHeight, int kTileVectors>
struct NeonTile : TileOf<Neon, kHeight, kTileVectors> {
  // Adds what one row of weights gives for lane kLane of the inputs, two
  // vectors of weights at a time; the first with all inputs before the second,
  // for which processors that work in order then need not wait.
  template <int kLane>
  OPTFARM_INLINE void AddLanes(const float32x4_t* inputs,
                               const float** weights) {
#pragma GCC unroll 4
    for (int v = 0; v + 1 < kTileVectors; v += 2) {
      float32x4_t low, high;
      LoadTwo(weights, &low, &high);
#pragma GCC unroll 8
      for (int m = 0; m < kHeight; ++m) {
        AddLane<kLane>(low, inputs[m], &this->sums[m][v]);
      }
#pragma GCC unroll 8
      for (int m = 0; m < kHeight; ++m) {
        AddLane<kLane>(high, inputs[m], &this->sums[m][v + 1]);
      }
    }
    if constexpr (kTileVectors % 2 != 0) {
      const float32x4_t last = vld1q_f32(*weights);
      *weights += Neon::kLanes;
#pragma GCC unroll 8
      for (int m = 0; m < kHeight; ++m) {
        AddLane<kLane>(last, inputs[m], &this->sums[m][kTileVectors - 1]);
      }
    }
  }

  // The inputs of all rows that stand `at` bytes behind theirs.
  OPTFARM_INLINE void AddStep(const char* const (&in)[kHeight], int64_t at,
                              const float** weights) {
    float32x4_t values[kHeight];
#pragma GCC unroll 8
    for (int m = 0; m < kHeight; ++m) {
      values[m] = vld1q_f32(reinterpret_cast<const float*>(in[m] + at));
    }
    AddLanes<0>(values, weights);
    AddLanes<1>(values, weights);
    AddLanes<2>(values, weights);
    AddLanes<3>(values, weights);
  }

  OPTFARM_INLINE void AddAll(const FloatTile& t) {
    const float* weights = t.weights;
    const float* const* inputs = t.inputs;
    for (int64_t tap = 0; tap < t.taps; ++tap, inputs += kHeight) {
      const char* in[kHeight];
#pragma GCC unroll 8
      for (int m = 0; m < kHeight; ++m) {
        in[m] = reinterpret_cast<const char*>(inputs[m]);
      }
      // UNITS: bytes up to the end of whole steps, which leaves compilers a
      // single counter, and nothing to compare it with.
      constexpr int64_t kStepBytes = sizeof(float);
      constexpr int64_t kBytes = kSteps * kStepBytes;
      const int64_t whole = t.run / kSteps * kBytes;
#pragma GCC unroll 8
      for (int m = 0; m < kHeight; ++m) in[m] += whole;
      int64_t at = -whole;
      if (whole % (2 * kBytes) != 0) {
        AddStep(in, at, &weights);
        at += kBytes;
      }
      for (; at != 0; at += 2 * kBytes) {
        AddStep(in, at, &weights);
        AddStep(in, at + kBytes, &weights);
      }
      const int64_t end = t.run * kStepBytes - whole;
      for (at = 0; at < end; at += kStepBytes) {
        float32x4_t values[kHeight];
#pragma GCC unroll 8
        for (int m = 0; m < kHeight; ++m) {
          values[m] = vld1q_dup_f32(reinterpret_cast<const float*>(in[m] + at));
        }
        AddLanes<0>(values, &weights);
      }
    }
  }

#if defined(__aarch64__)
  OPTFARM_INLINE void AddResidual(const float* residual, int64_t stride) {
#pragma GCC unroll 8
    for (int m = 0; m < kHeight; ++m, residual += stride) {
      AddResidualOfRow<0>(residual, m);
    }
  }
  template <int kVector>
  OPTFARM_INLINE void AddResidualOfRow(const float* residual, int m) {
    float32x4_t low, high;
    LoadResidual<kVector * 16>(residual, &low, &high);
    this->sums[m][kVector] = vaddq_f32(this->sums[m][kVector], low);
    this->sums[m][kVector + 1] = vaddq_f32(this->sums[m][kVector + 1], high);
    if constexpr (kVector + 2 < kTileVectors) {
      AddResidualOfRow<kVector + 2>(residual, m);
    }
  }
  OPTFARM_INLINE void RectifyAll(Rectifier rectifier) {
    if (rectifier == Rectifier::kNone) return;
#pragma GCC unroll 8
    for (int m = 0; m < kHeight; ++m) {
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; v += 2) {
        RectifyTwo(&this->sums[m][v], &this->sums[m][v + 1]);
      }
    }
    if (rectifier != Rectifier::kRelu6) return;
    const float32x4_t six = vdupq_n_f32(6.0f);
#pragma GCC unroll 8
    for (int m = 0; m < kHeight; ++m) {
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; v += 2) {
        CapTwo(six, &this->sums[m][v], &this->sums[m][v + 1]);
      }
    }
  }
  template <int kVector>
  OPTFARM_INLINE void StoreRow(float* out, int m) const {
    StoreTwo<kVector * 16>(out, this->sums[m][kVector],
                           this->sums[m][kVector + 1]);
    if constexpr (kVector + 2 < kTileVectors) StoreRow<kVector + 2>(out, m);
  }
  // As TileOf::StoreWhole.
  OPTFARM_INLINE void StoreAll(const FloatTile& t) {
    static_assert(kTileVectors % 2 == 0);
    // Read once: compilers take it that stores may change the tile.
    const int64_t stride = t.row_stride;
    float* out = t.out;
    if (t.residual != nullptr) AddResidual(t.residual, stride);
    RectifyAll(t.rectifier);
#pragma GCC unroll 8
    for (int m = 0; m < kHeight; ++m, out += stride) StoreRow<0>(out, m);
  }
#else
  OPTFARM_INLINE void StoreAll(const FloatTile& t) { this->StoreWhole(t); }
#endif

  static void Run(const FloatTile& t) {
    NeonTile tile;
    tile.Clear();
    tile.AddAll(t);
    tile.Scale(t);
    tile.StoreAll(t);
  }
};

template <int kTileVectors, int... kHeights>
void RunWhole(const FloatTile& tile, std::integer_sequence<int, kHeights...>) {
  using Function = void (*)(const FloatTile&);
  static constexpr Function kTiles[] = {
      &NeonTile<kHeights + 1, kTileVectors>::Run...};
  kTiles[tile.rows - 1](tile);
}

void CopyColumns(const FloatTile& t, const float* from, int64_t from_stride,
                 float* to, int64_t to_stride) {
  for (int r = 0; r < t.rows; ++r, from += from_stride, to += to_stride) {
    for (int c = 0; c < t.columns; ++c) to[c] = from[c];
  }
}

template <int kTileVectors>
void RunTile(const FloatTile& t) {
  constexpr int kStride = kTileVectors * Neon::kLanes;
  using Heights = std::make_integer_sequence<int, kRows>;
  if (t.columns == kStride) return RunWhole<kTileVectors>(t, Heights());
  // Beside the result, which has no room for the columns that fill up a panel.
  float whole[kRows * kStride] = {};
  FloatTile tile = t;
  tile.out = whole;
  tile.row_stride = kStride;
  if (t.residual != nullptr) {
    CopyColumns(t, t.residual, t.row_stride, whole, kStride);
    tile.residual = whole;
  }
  RunWhole<kTileVectors>(tile, Heights());
  CopyColumns(t, whole, kStride, t.out, t.row_stride);
}

// A panel after the other: four sums are enough for one row, whose weights are
// waited for anyway.
void RunRow(const FloatTile& t, int64_t panel_stride) {
  FloatTile tile = t;
  for (int left = t.columns; left > 0; left -= kWidth) {
    const bool is_narrow = left <= kWidth / 2;
    tile.columns = left < kWidth ? left : kWidth;
    if (is_narrow) {
      RunTile<kVectors / 2>(tile);
    } else {
      RunTile<kVectors>(tile);
    }
    tile.weights += panel_stride;
    tile.out += kWidth;
    if (tile.residual != nullptr) tile.residual += kWidth;
    if (tile.scale != nullptr) tile.scale += kWidth;
    if (tile.bias != nullptr) tile.bias += kWidth;
  }
}

constexpr FloatTiles kTiles = {
    kRows,   kWidth,        &RunTile<kVectors>, &RunTile<kVectors / 2>,
    &RunRow, &AddRows<Neon>};

}  // namespace

constexpr MicroKernel kFloatGemmNeon = {
    .name = "float_gemm_neon",
    .kind = MicroKernelKind::kFloatGemm,
    .needs = {.neon = true},
    .mr = kTiles.rows,
    .panel = {.nr = kTiles.width},
    .epilogue = kActivates,
    .run = {.float_gemm = &kTiles},
};

}  // namespace optfarm::runtime
