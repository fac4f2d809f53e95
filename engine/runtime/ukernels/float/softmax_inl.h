// softmax.h for any vector type, as element_functions_inl.h takes it.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_SOFTMAX_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_SOFTMAX_INL_H_

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/float/element_functions_inl.h"
#include "engine/runtime/ukernels/float/softmax.h"

namespace optfarm::runtime {

template <typename Vector>
struct SoftmaxOf {
  using Elements = ElementsOf<Vector>;
  using Register = typename Vector::Register;
  using Words = typename Vector::Words;
  static constexpr int kLanes = Vector::kLanes;
  static constexpr float kInfinity = __builtin_inff();

  // `some` in the first `lanes`, `other` behind them.
  static OPTFARM_INLINE Register First(int lanes, Register some, float other) {
    Words number = {};
    for (int i = 0; i < kLanes; ++i) number[i] = i;
    return number < lanes ? some : Elements::Fill(other);
  }

  // Pairs of lanes first, for which nothing waits long.
  template <typename Function>
  static OPTFARM_INLINE float Reduce(Register value, Function function) {
    float lanes[kLanes];
    Vector::Store(lanes, value);
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) {
        lanes[i] = function(lanes[i], lanes[i + half]);
      }
    }
    return lanes[0];
  }

  // Powers that are hardly more than denormal are zero; NaN stays.
  static OPTFARM_INLINE Register Power(Register x) {
    return x < Elements::Fill(-87.0f) ? Vector::Zero() : Elements::Exp(x);
  }

  // The largest value of a row, which goes to `out` where there is a bias. NaN
  // may be lost: the powers bring it into their sum.
  template <bool kHasBias>
  static OPTFARM_INLINE float Largest(const float* in, const float* bias,
                                      int64_t columns, float* out) {
    Register largest = Elements::Fill(-kInfinity);
    int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) {
      Register x = Vector::Load(in + i);
      if constexpr (kHasBias) {
        x = x + Vector::Load(bias + i);
        Vector::Store(out + i, x);
      }
      largest = Vector::Max(largest, x);
    }
    const int left = static_cast<int>(columns - i);
    if (left > 0) {
      Register x = Vector::LoadSome(in + i, left);
      if constexpr (kHasBias) {
        x = x + Vector::LoadSome(bias + i, left);
        Vector::StoreSome(out + i, x, left);
      }
      largest = Vector::Max(largest, First(left, x, -kInfinity));
    }
    return Reduce(largest, [](float a, float b) { return a < b ? b : a; });
  }

  // Writes e^(x - largest); their sum.
  static OPTFARM_INLINE float Powers(const float* in, float largest,
                                     int64_t columns, float* out) {
    const Register shift = Elements::Fill(largest);
    Register sum = Vector::Zero();
    int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) {
      const Register power = Power(Vector::Load(in + i) - shift);
      Vector::Store(out + i, power);
      sum = sum + power;
    }
    const int left = static_cast<int>(columns - i);
    if (left > 0) {
      const Register power = Power(Vector::LoadSome(in + i, left) - shift);
      Vector::StoreSome(out + i, power, left);
      sum = sum + First(left, power, 0.0f);
    }
    return Reduce(sum, [](float a, float b) { return a + b; });
  }

  template <bool kHasBias>
  static void Run(const SoftmaxRows& rows) {
    for (int64_t row = 0; row < rows.rows; ++row) {
      const float* const in = rows.in + row * rows.columns;
      float* const out = rows.out + row * rows.columns;
      const float largest = Largest<kHasBias>(in, rows.bias, rows.columns, out);
      // At least one, the power of the largest; or NaN.
      const float sum = Powers(kHasBias ? out : in, largest, rows.columns, out);
      const float part = 1.0f / sum;
      if (rows.reciprocals != nullptr) {
        rows.reciprocals[row] = part;
        continue;
      }
      Elements::template RunRow<typename Elements::Multiply, true, false>(
          out, &part, rows.columns, out);
    }
  }
  static void Run(const SoftmaxRows& rows) {
    if (rows.bias != nullptr) {
      Run<true>(rows);
    } else {
      Run<false>(rows);
    }
  }
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_SOFTMAX_INL_H_
