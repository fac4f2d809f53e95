// element_functions.h for any vector type. Besides what float_tile_inl.h tells
// of it has Words (integers in the place of floats), Min(a, b) and
// Reciprocal(a); arithmetic is written with the compiler's operators on
// vectors.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_ELEMENT_FUNCTIONS_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_ELEMENT_FUNCTIONS_INL_H_

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/float/element_functions.h"

namespace optfarm::runtime {

template <typename Vector>
struct ElementsOf {
  using Register = typename Vector::Register;
  using Words = typename Vector::Words;
  static constexpr int kLanes = Vector::kLanes;

  static OPTFARM_INLINE Register Fill(float x) { return Vector::Broadcast(&x); }

  struct Add {
    static OPTFARM_INLINE Register Of(Register a, Register b) { return a + b; }
  };
  struct Subtract {
    static OPTFARM_INLINE Register Of(Register a, Register b) { return a - b; }
  };
  struct Multiply {
    static OPTFARM_INLINE Register Of(Register a, Register b) { return a * b; }
  };
  struct Divide {
    static OPTFARM_INLINE Register Of(Register a, Register b) {
      return Vector::Divide(a, b);
    }
  };
  // As the reference kernels have it for NaN: the first stays.
  struct Maximum {
    static OPTFARM_INLINE Register Of(Register a, Register b) {
      return a < b ? b : a;
    }
  };
  struct Minimum {
    static OPTFARM_INLINE Register Of(Register a, Register b) {
      return b < a ? b : a;
    }
  };
  struct Negate {
    static OPTFARM_INLINE Register Of(Register a, Register) { return -a; }
  };
  struct Square {
    static OPTFARM_INLINE Register Of(Register a, Register) { return a * a; }
  };
  struct Cube {
    static OPTFARM_INLINE Register Of(Register a, Register) {
      return a * a * a;
    }
  };
  struct Relu {
    static OPTFARM_INLINE Register Of(Register a, Register) {
      return Vector::Relu(a);
    }
  };
  struct Relu6 {
    static OPTFARM_INLINE Register Of(Register a, Register) {
      return Vector::Cap6(Vector::Relu(a));
    }
  };

  // e^x = 2^m * e^r as VectorExp (kernels/vector_math.h) has it, with the
  // nearest m, found by adding a number that leaves no digits behind the point.
  // Outside of [-87, 87] the result stays at the bound's; NaN stays.
  static OPTFARM_INLINE Register Exp(Register x) {
    constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23
    const Register within =
        Vector::Min(Fill(87.0f), Vector::Max(Fill(-87.0f), x));
    const Register rounded =
        Vector::MultiplyAdd(within, Fill(1.44269504088896341f), Fill(kRounder));
    const Register m = rounded - Fill(kRounder);
    const Register r =
        Vector::MultiplyAdd(m, Fill(-0.6931471805599453f), within);
    Register p = Fill(1.9875691500e-4f);
    p = Vector::MultiplyAdd(p, r, Fill(1.3981999507e-3f));
    p = Vector::MultiplyAdd(p, r, Fill(8.3334519073e-3f));
    p = Vector::MultiplyAdd(p, r, Fill(4.1665795894e-2f));
    p = Vector::MultiplyAdd(p, r, Fill(1.6666665459e-1f));
    p = Vector::MultiplyAdd(p, r, Fill(5.0000001201e-1f));
    const Register mantissa = Vector::MultiplyAdd(p, r * r, r) + Fill(1.0f);
    // The last digits of `rounded` are m.
    const Words power = (reinterpret_cast<Words>(rounded) << 23) + (127 << 23);
    return mantissa * reinterpret_cast<Register>(power);
  }

  struct Sigmoid {
    static OPTFARM_INLINE Register Of(Register a, Register) {
      return Vector::Reciprocal(Fill(1.0f) + Exp(-a));
    }
  };

  // Near zero the odd polynomial of tanhf in S. Moshier's Cephes; elsewhere
  // 1 - 2 / (e^2|x| + 1), with the sign of x.
  struct Tanh {
    static OPTFARM_INLINE Register Of(Register a, Register) {
      const Words sign = reinterpret_cast<Words>(a) & INT32_MIN;
      const Register size =
          reinterpret_cast<Register>(reinterpret_cast<Words>(a) & INT32_MAX);
      const Register square = a * a;
      Register p = Fill(-5.70498872745e-3f);
      p = Vector::MultiplyAdd(p, square, Fill(2.06390887954e-2f));
      p = Vector::MultiplyAdd(p, square, Fill(-5.37397155531e-2f));
      p = Vector::MultiplyAdd(p, square, Fill(1.33314422036e-1f));
      p = Vector::MultiplyAdd(p, square, Fill(-3.33332819422e-1f));
      const Register near = Vector::MultiplyAdd(p * square, a, a);
      const Register one = Fill(1.0f);
      const Register two = Fill(2.0f);
      const Register far =
          one - two * Vector::Reciprocal(Exp(size + size) + one);
      const Register signed_far =
          reinterpret_cast<Register>(reinterpret_cast<Words>(far) | sign);
      // NaN is not far, and comes through the polynomial.
      return size >= Fill(0.625f) ? signed_far : near;
    }
  };

  // x P(x^2) / Q(x^2), fitted by least squares with Lawson's weights on [-3.9,
  // 3.9]; beyond, the value at the end. Its relative error in single precision
  // is at most 3.3e-7.
  struct Erf {
    static OPTFARM_INLINE Register Of(Register a, Register) {
      const Register x = Vector::Min(Fill(3.9f), Vector::Max(Fill(-3.9f), a));
      const Register square = x * x;
      Register p = Fill(2.06647087e-6f);
      p = Vector::MultiplyAdd(p, square, Fill(2.85060640e-4f));
      p = Vector::MultiplyAdd(p, square, Fill(3.73830530e-3f));
      p = Vector::MultiplyAdd(p, square, Fill(5.26679531e-2f));
      p = Vector::MultiplyAdd(p, square, Fill(1.89665973e-1f));
      p = Vector::MultiplyAdd(p, square, Fill(1.12837911f));
      Register q = Fill(3.82699145e-5f);
      q = Vector::MultiplyAdd(q, square, Fill(1.15736516e-3f));
      q = Vector::MultiplyAdd(q, square, Fill(1.49141951e-2f));
      q = Vector::MultiplyAdd(q, square, Fill(1.13818586e-1f));
      q = Vector::MultiplyAdd(q, square, Fill(5.01419842e-1f));
      q = Vector::MultiplyAdd(q, square, Fill(1.0f));
      const Register y = Vector::Divide(x * p, q);
      return Vector::Min(Fill(1.0f), Vector::Max(Fill(-1.0f), y));
    }
  };

  struct Gelu {
    static OPTFARM_INLINE Register Of(Register a, Register b) {
      const Register half = a * Fill(0.5f);
      const Register erf = Erf::Of(a * Fill(0.707106781f), b);
      return Vector::MultiplyAdd(half, erf, half);
    }
  };

  // 0.5 (1 + tanh u) is the logistic function of 2 u, with u =
  // sqrt(2 / pi) (x + 0.044715 x^3).
  struct GeluByTanh {
    static OPTFARM_INLINE Register Of(Register a, Register b) {
      const Register cubic =
          Vector::MultiplyAdd(a * a, Fill(0.044715f), Fill(1.0f));
      const Register u = a * cubic * Fill(1.59576912f);
      // Powers end at their bound: what a large operand would make visible.
      const Register share =
          u < Fill(-87.0f) ? Vector::Zero() : Sigmoid::Of(u, b);
      return a * share;
    }
  };

  template <typename Function, bool kAMoves, bool kBMoves>
  static OPTFARM_INLINE void RunRow(const float* a, const float* b,
                                    int64_t count, float* out) {
    const Register fixed_a = Vector::Broadcast(a);
    const Register fixed_b = Vector::Broadcast(b);
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      Vector::Store(out + i,
                    Function::Of(kAMoves ? Vector::Load(a + i) : fixed_a,
                                 kBMoves ? Vector::Load(b + i) : fixed_b));
    }
    const int left = static_cast<int>(count - i);
    if (left == 0) return;
    const Register result =
        Function::Of(kAMoves ? Vector::LoadSome(a + i, left) : fixed_a,
                     kBMoves ? Vector::LoadSome(b + i, left) : fixed_b);
    Vector::StoreSome(out + i, result, left);
  }

  // REQUIRES: count > 0.
  template <typename Function>
  static void RunBinary(const ElementRow& a, const ElementRow& b, int64_t count,
                        float* out) {
    if (a.moves && b.moves) {
      RunRow<Function, true, true>(a.values, b.values, count, out);
    } else if (a.moves) {
      RunRow<Function, true, false>(a.values, b.values, count, out);
    } else if (b.moves) {
      RunRow<Function, false, true>(a.values, b.values, count, out);
    } else {
      RunRow<Function, false, false>(a.values, b.values, count, out);
    }
  }
  template <typename Function>
  static void RunUnary(const ElementRow& a, const ElementRow&, int64_t count,
                       float* out) {
    if (a.moves) {
      RunRow<Function, true, false>(a.values, a.values, count, out);
    } else {
      RunRow<Function, false, false>(a.values, a.values, count, out);
    }
  }
};

template <typename Vector>
constexpr ElementFunctions ElementFunctionsOf() {
  using Elements = ElementsOf<Vector>;
  return {&Elements::template RunBinary<typename Elements::Add>,
          &Elements::template RunBinary<typename Elements::Subtract>,
          &Elements::template RunBinary<typename Elements::Multiply>,
          &Elements::template RunBinary<typename Elements::Divide>,
          &Elements::template RunBinary<typename Elements::Maximum>,
          &Elements::template RunBinary<typename Elements::Minimum>,
          &Elements::template RunUnary<typename Elements::Negate>,
          &Elements::template RunUnary<typename Elements::Square>,
          &Elements::template RunUnary<typename Elements::Cube>,
          &Elements::template RunUnary<typename Elements::Relu>,
          &Elements::template RunUnary<typename Elements::Relu6>,
          &Elements::template RunUnary<typename Elements::Sigmoid>,
          &Elements::template RunUnary<typename Elements::Tanh>,
          &Elements::template RunUnary<typename Elements::Erf>,
          &Elements::template RunUnary<typename Elements::Gelu>,
          &Elements::template RunUnary<typename Elements::GeluByTanh>};
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_ELEMENT_FUNCTIONS_INL_H_
