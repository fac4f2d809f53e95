// The arithmetic of two elements, one function for each op: `Of(a, b)` for any
// type that the op takes. Integers wrap around.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BINARY_FUNCTIONS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BINARY_FUNCTIONS_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace optfarm::runtime {

// Integer arithmetic modulo 2^n, on 64 bits; the cast back keeps the low bits.
template <typename T>
uint64_t Bits(T x) {
  return static_cast<uint64_t>(x);
}

struct AddOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Bits(a) + Bits(b));
    else
      return a + b;
  }
};
struct SubOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Bits(a) - Bits(b));
    else
      return a - b;
  }
};
struct MulOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Bits(a) * Bits(b));
    else
      return a * b;
  }
};
struct SquaredDifferenceOp {
  template <typename T>
  static T Of(T a, T b) {
    const T d = SubOp::Of(a, b);
    return MulOp::Of(d, d);
  }
};

// The divisions. Integer divisors are known not to be 0; -1 is apart because
// the smallest integer has no opposite.
struct DivOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      if (b == T(-1)) return SubOp::Of(T(0), a);
    }
    return static_cast<T>(a / b);
  }
};
struct FloorDivOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::floor(a / b);
    } else if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return SubOp::Of(T(0), a);
      const T q = static_cast<T>(a / b);
      return static_cast<T>(q - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0));
    } else {
      return static_cast<T>(a / b);
    }
  }
};
struct TruncateModOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return T(0);
      }
      return static_cast<T>(a % b);
    }
  }
};
struct FloorModOp {
  template <typename T>
  static T Of(T a, T b) {
    const T r = TruncateModOp::Of(a, b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? AddOp::Of(r, b) : r;
  }
};
struct DivNoNanOp {
  template <typename T>
  static T Of(T a, T b) {
    return b == T(0) ? T(0) : DivOp::Of(a, b);
  }
};
struct MulNoNanOp {
  template <typename T>
  static T Of(T a, T b) {
    return b == T(0) ? T(0) : MulOp::Of(a, b);
  }
};

// Integer exponents are known not to be negative.
struct PowOp {
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      T result = 1;
      for (uint64_t e = Bits(b); e != 0; e >>= 1) {
        if (e & 1) result = MulOp::Of(result, a);
        a = MulOp::Of(a, a);
      }
      return result;
    }
  }
};
struct Atan2Op {
  template <typename T>
  static T Of(T a, T b) {
    return std::atan2(a, b);
  }
};
struct MaximumOp {
  template <typename T>
  static T Of(T a, T b) {
    return a < b ? b : a;
  }
};
struct MinimumOp {
  template <typename T>
  static T Of(T a, T b) {
    return b < a ? b : a;
  }
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BINARY_FUNCTIONS_H_
