// How whole-number values go through arithmetic, comparisons and reductions: an
// op's row says, for example, BinaryValue<value_rules::Plus>. Elements that
// overflow become unknown.

#ifndef OPTFARM_ENGINE_GRAPH_SHAPES_ARITHMETIC_VALUES_H_
#define OPTFARM_ENGINE_GRAPH_SHAPES_ARITHMETIC_VALUES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/shapes/shape_context.h"
#include "engine/graph/shapes/shape_values.h"

namespace optfarm::graph::value_rules {

using Unary = Element (*)(int64_t);
using Binary = Element (*)(int64_t, int64_t);

template <Unary kOp>
absl::Status UnaryValue(ShapeContext& c) {
  const PartialValue* in = c.value(0);
  if (in == nullptr) return absl::OkStatus();
  PartialValue out = *in;
  for (Element& element : out.elements) {
    if (element.has_value()) element = kOp(*element);
  }
  c.set_value(0, std::move(out));
  return absl::OkStatus();
}

// Vectors and scalars; other ranks do not carry shapes.
template <Binary kOp>
absl::Status BinaryValue(ShapeContext& c) {
  const PartialValue* x = c.value(0);
  const PartialValue* y = c.value(1);
  const auto dims = SmallOutput(c, 0);
  if (x == nullptr || y == nullptr || !dims.has_value() || dims->size() > 1) {
    return absl::OkStatus();
  }
  const size_t n = static_cast<size_t>(Product(*dims));
  Elements out(n);
  for (size_t i = 0; i < n; ++i) {
    const size_t xi = x->elements.size() == 1 ? 0 : i;
    const size_t yi = y->elements.size() == 1 ? 0 : i;
    if (xi >= x->elements.size() || yi >= y->elements.size()) continue;
    if (x->elements[xi].has_value() && y->elements[yi].has_value()) {
      out[i] = kOp(*x->elements[xi], *y->elements[yi]);
    }
  }
  c.set_value(0, {*dims, std::move(out)});
  return absl::OkStatus();
}

inline Element Negate(int64_t x) {
  if (x == std::numeric_limits<int64_t>::min()) return std::nullopt;
  return -x;
}
inline Element Absolute(int64_t x) { return x < 0 ? Negate(x) : x; }
inline Element Not(int64_t x) { return x == 0 ? 1 : 0; }
inline Element Plus(int64_t x, int64_t y) {
  int64_t out = 0;
  return __builtin_add_overflow(x, y, &out) ? Element() : Element(out);
}
inline Element Minus(int64_t x, int64_t y) {
  int64_t out = 0;
  return __builtin_sub_overflow(x, y, &out) ? Element() : Element(out);
}
inline Element Times(int64_t x, int64_t y) {
  int64_t out = 0;
  return __builtin_mul_overflow(x, y, &out) ? Element() : Element(out);
}
inline Element Squared(int64_t x) { return Times(x, x); }
inline bool CanDivide(int64_t x, int64_t y) {
  return y != 0 && !(y == -1 && x == std::numeric_limits<int64_t>::min());
}
inline Element TruncatedQuotient(int64_t x, int64_t y) {
  return CanDivide(x, y) ? Element(x / y) : Element();
}
inline Element FlooredQuotient(int64_t x, int64_t y) {
  if (!CanDivide(x, y)) return std::nullopt;
  return x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
}
inline Element FlooredRemainder(int64_t x, int64_t y) {
  if (!CanDivide(x, y)) return std::nullopt;
  const int64_t r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
inline Element Larger(int64_t x, int64_t y) { return std::max(x, y); }
inline Element Smaller(int64_t x, int64_t y) { return std::min(x, y); }
inline Element IsEqual(int64_t x, int64_t y) { return x == y; }
inline Element IsNotEqual(int64_t x, int64_t y) { return x != y; }
inline Element IsLess(int64_t x, int64_t y) { return x < y; }
inline Element IsLessEqual(int64_t x, int64_t y) { return x <= y; }
inline Element IsGreater(int64_t x, int64_t y) { return x > y; }
inline Element IsGreaterEqual(int64_t x, int64_t y) { return x >= y; }
inline Element And(int64_t x, int64_t y) { return x != 0 && y != 0; }
inline Element Or(int64_t x, int64_t y) { return x != 0 || y != 0; }

// Reduction of a whole tensor to one number. `kOfNothing` is that of no
// elements, where it has one: sums and products do.
template <Binary kOp, int... kOfNothing>
absl::Status ReducedValue(ShapeContext& c) {
  const auto in = c.Known(0);
  const auto dims = SmallOutput(c, 0);
  if (!in.has_value() || !dims.has_value() || Product(*dims) != 1) {
    return absl::OkStatus();
  }
  Element out;
  if (in->empty()) {
    ((out = kOfNothing), ...);
  } else {
    out = (*in)[0];
    for (size_t i = 1; i < in->size() && out.has_value(); ++i) {
      out = kOp(*out, (*in)[i]);
    }
  }
  if (out.has_value()) c.set_value(0, {*dims, {out}});
  return absl::OkStatus();
}

}  // namespace optfarm::graph::value_rules

#endif  // OPTFARM_ENGINE_GRAPH_SHAPES_ARITHMETIC_VALUES_H_
