// Winograd's transforms for any vector type (float_tile_inl.h says what it
// has; Subtract(a, b) and HasNan(a) besides).

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_WINOGRAD_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_WINOGRAD_INL_H_

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/float/winograd.h"

namespace optfarm::runtime {

template <typename Vector>
struct Winograd {
  using Register = typename Vector::Register;
  static constexpr int kLanes = Vector::kLanes;
  static_assert(kWinogradChannels % kLanes == 0);

  // B' times four values.
  static OPTFARM_INLINE void TransformInputs(const Register* d, int step,
                                             Register* to) {
    const Register d1 = d[step];
    const Register d2 = d[2 * step];
    to[0] = Vector::Subtract(d[0], d2);
    to[step] = Vector::Add(d1, d2);
    to[2 * step] = Vector::Subtract(d2, d1);
    to[3 * step] = Vector::Subtract(d1, d[3 * step]);
  }

  // G times three values.
  static OPTFARM_INLINE void TransformFilters(Register g0, Register g1,
                                              Register g2, int step,
                                              Register* to) {
    static constexpr float kHalf = 0.5f;
    const Register half = Vector::Broadcast(&kHalf);
    const Register outer =
        Vector::MultiplyAdd(Vector::Add(g0, g2), half, Vector::Zero());
    const Register inner = Vector::MultiplyAdd(g1, half, Vector::Zero());
    to[0] = g0;
    to[step] = Vector::Add(outer, inner);
    to[2 * step] = Vector::Subtract(outer, inner);
    to[3 * step] = g2;
  }

  // A' times four values.
  static OPTFARM_INLINE void TransformResults(const Register* m, int step,
                                              Register* to, int to_step) {
    const Register m1 = m[step];
    const Register m2 = m[2 * step];
    to[0] = Vector::Add(Vector::Add(m[0], m1), m2);
    to[to_step] = Vector::Subtract(Vector::Subtract(m1, m2), m[3 * step]);
  }

  static void Filters(const WinogradFilters& f) {
    const int64_t tap = f.channels * f.width;
    for (int64_t at = 0; at < tap; at += kLanes) {
      Register half[12];
#pragma GCC unroll 3
      for (int x = 0; x < 3; ++x) {
        const float* g = f.panel + x * tap + at;
        TransformFilters(Vector::Load(g), Vector::Load(g + 3 * tap),
                         Vector::Load(g + 6 * tap), 3, half + x);
      }
#pragma GCC unroll 4
      for (int y = 0; y < 4; ++y) {
        Register row[4];
        TransformFilters(half[3 * y], half[3 * y + 1], half[3 * y + 2], 1, row);
#pragma GCC unroll 4
        for (int x = 0; x < 4; ++x) {
          Vector::Store(f.to + (4 * y + x) * f.position_stride + at, row[x]);
        }
      }
    }
  }

  static void Inputs(const WinogradInputs& i) {
    // Copied, because compilers take it that stores may change them.
    const float* pixels[kWinogradPositions];
#pragma GCC unroll 16
    for (int p = 0; p < kWinogradPositions; ++p) pixels[p] = i.pixels[p];
    const int64_t stride = i.position_stride;
    const int64_t channels = i.channels;
    float* all = i.to;
    for (int64_t c = 0; c < channels; c += kLanes, all += kLanes) {
      Register d[kWinogradPositions];
#pragma GCC unroll 4
      for (int x = 0; x < 4; ++x) {
#pragma GCC unroll 4
        for (int y = 0; y < 4; ++y) {
          d[4 * y + x] = Vector::Load(pixels[4 * y + x] + c);
        }
        TransformInputs(d + x, 4, d + x);
      }
      float* to = all;
#pragma GCC unroll 4
      for (int y = 0; y < 4; ++y) {
        TransformInputs(d + 4 * y, 1, d + 4 * y);
#pragma GCC unroll 4
        for (int x = 0; x < 4; ++x, to += stride) {
          Vector::Store(to, d[4 * y + x]);
        }
      }
    }
  }

  static OPTFARM_INLINE void ScaleAndAddBias(const WinogradResults& r,
                                             int column, Register* pixels) {
    if (r.scale == nullptr && r.bias == nullptr) return;
    const Register bias =
        r.bias == nullptr ? Vector::Zero() : Vector::Load(r.bias + column);
    if (r.scale == nullptr) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) pixels[i] = Vector::Add(pixels[i], bias);
      return;
    }
    const Register scale = Vector::Load(r.scale + column);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      pixels[i] = Vector::MultiplyAdd(pixels[i], scale, bias);
    }
  }

  static OPTFARM_INLINE Register Rectify(Rectifier rectifier, Register sum) {
    if (rectifier != Rectifier::kNone) sum = Vector::Relu(sum);
    if (rectifier == Rectifier::kRelu6) sum = Vector::Cap6(sum);
    return sum;
  }

  static OPTFARM_INLINE void StoreColumns(const WinogradResults& r, int column,
                                          int pixel, Register sum) {
    if (r.out[pixel] == nullptr) return;
    float* out = r.out[pixel] + column;
    const float* residual = r.residual[pixel];
    const int left = r.columns - column;
    if (left >= kLanes) {
      if (residual != nullptr) {
        sum = Vector::Add(sum, Vector::Load(residual + column));
      }
      Vector::Store(out, Rectify(r.rectifier, sum));
    } else {
      if (residual != nullptr) {
        sum = Vector::Add(sum, Vector::LoadSome(residual + column, left));
      }
      Vector::StoreSome(out, Rectify(r.rectifier, sum), left);
    }
  }

  static uint32_t Results(const WinogradResults& r) {
    // Copied, because compilers take it that stores may change them.
    const float* const sums = r.sums;
    const int64_t stride = r.position_stride;
    uint32_t left_out = 0;
    for (int column = 0; column < r.columns; column += kLanes) {
      const float* rows[4];
#pragma GCC unroll 4
      for (int y = 0; y < 4; ++y) {
        rows[y] = sums + 4 * y * stride + column;
      }
      Register half[8];
#pragma GCC unroll 4
      for (int x = 0; x < 4; ++x) {
        Register m[4];
#pragma GCC unroll 4
        for (int y = 0; y < 4; ++y) {
          m[y] = Vector::Load(rows[y]);
          rows[y] += stride;
        }
        TransformResults(m, 1, half + x, 4);
      }
      Register pixels[4];
      TransformResults(half, 1, pixels, 1);
      TransformResults(half + 4, 1, pixels + 2, 1);
      // Zero times what is not finite is NaN.
      Register check = Vector::Zero();
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        check = Vector::MultiplyAdd(pixels[i], Vector::Zero(), check);
      }
      if (Vector::HasNan(check)) {
        left_out |= 1u << (column / kLanes);
        continue;
      }
      ScaleAndAddBias(r, column, pixels);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) StoreColumns(r, column, i, pixels[i]);
    }
    return left_out;
  }
};

template <typename Vector>
constexpr WinogradTransforms WinogradWith() {
  return {&Winograd<Vector>::Filters, &Winograd<Vector>::Inputs,
          &Winograd<Vector>::Results, Vector::kLanes};
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_WINOGRAD_INL_H_
