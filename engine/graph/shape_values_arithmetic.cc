// How whole-number values go through arithmetic, comparisons and choices; see
// shape_values.cc.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/shape_context.h"
#include "engine/graph/shape_values.h"

namespace optfarm::graph {
namespace {

using value_rules::Element;
using value_rules::Elements;
using value_rules::FromDim;
using value_rules::Product;
using value_rules::SmallOutput;

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

Element Negate(int64_t x) {
  if (x == std::numeric_limits<int64_t>::min()) return std::nullopt;
  return -x;
}
Element Absolute(int64_t x) { return x < 0 ? Negate(x) : x; }
Element Not(int64_t x) { return x == 0 ? 1 : 0; }
Element Plus(int64_t x, int64_t y) {
  int64_t out = 0;
  return __builtin_add_overflow(x, y, &out) ? Element() : Element(out);
}
Element Minus(int64_t x, int64_t y) {
  int64_t out = 0;
  return __builtin_sub_overflow(x, y, &out) ? Element() : Element(out);
}
Element Times(int64_t x, int64_t y) {
  int64_t out = 0;
  return __builtin_mul_overflow(x, y, &out) ? Element() : Element(out);
}
Element Squared(int64_t x) { return Times(x, x); }
bool CanDivide(int64_t x, int64_t y) {
  return y != 0 && !(y == -1 && x == std::numeric_limits<int64_t>::min());
}
Element TruncatedQuotient(int64_t x, int64_t y) {
  return CanDivide(x, y) ? Element(x / y) : Element();
}
Element FlooredQuotient(int64_t x, int64_t y) {
  if (!CanDivide(x, y)) return std::nullopt;
  return x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
}
Element FlooredRemainder(int64_t x, int64_t y) {
  if (!CanDivide(x, y)) return std::nullopt;
  const int64_t r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
Element Larger(int64_t x, int64_t y) { return std::max(x, y); }
Element Smaller(int64_t x, int64_t y) { return std::min(x, y); }
Element IsEqual(int64_t x, int64_t y) { return x == y; }
Element IsNotEqual(int64_t x, int64_t y) { return x != y; }
Element IsLess(int64_t x, int64_t y) { return x < y; }
Element IsLessEqual(int64_t x, int64_t y) { return x <= y; }
Element IsGreater(int64_t x, int64_t y) { return x > y; }
Element IsGreaterEqual(int64_t x, int64_t y) { return x >= y; }
Element And(int64_t x, int64_t y) { return x != 0 && y != 0; }
Element Or(int64_t x, int64_t y) { return x != 0 || y != 0; }

// Reduction of a whole tensor to one number.
template <Binary kOp>
absl::Status ReducedValue(ShapeContext& c) {
  const auto in = c.Known(0);
  const auto dims = SmallOutput(c, 0);
  if (!in.has_value() || !dims.has_value() || Product(*dims) != 1) {
    return absl::OkStatus();
  }
  Element out;
  if (in->empty()) {
    // Only sums and products of nothing have a value.
    if (c.node().op() == "Sum") out = 0;
    if (c.node().op() == "Prod") out = 1;
    if (c.node().op() == "All") out = 1;
    if (c.node().op() == "Any") out = 0;
  } else {
    out = (*in)[0];
    for (size_t i = 1; i < in->size() && out.has_value(); ++i) {
      out = kOp(*out, (*in)[i]);
    }
  }
  if (out.has_value()) c.set_value(0, {*dims, {out}});
  return absl::OkStatus();
}

absl::Status SelectValue(ShapeContext& c) {
  const auto dims = SmallOutput(c, 0);
  const PartialValue* condition = c.value(0);
  const PartialValue* t = c.value(1);
  const PartialValue* e = c.value(2);
  if (!dims.has_value() || condition == nullptr || t == nullptr ||
      e == nullptr || t->elements.size() != e->elements.size() ||
      Product(*dims) != static_cast<int64_t>(t->elements.size())) {
    return absl::OkStatus();
  }
  if (condition->elements.size() != 1 &&
      condition->elements.size() != t->elements.size()) {
    return absl::OkStatus();
  }
  Elements out(t->elements.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const Element& choice =
        condition->elements[condition->elements.size() == 1 ? 0 : i];
    if (!choice.has_value()) continue;
    out[i] = *choice != 0 ? t->elements[i] : e->elements[i];
  }
  c.set_value(0, {*dims, std::move(out)});
  return absl::OkStatus();
}

absl::Status BroadcastArgsValue(ShapeContext& c) {
  const auto a = c.ShapeFromInput(0);
  const auto b = c.ShapeFromInput(1);
  if (!a.ok() || !b.ok() || !a->has_rank() || !b->has_rank()) {
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape shape, BroadcastShapes(*a, *b));
  Elements elements;
  for (int64_t dim : shape.dims()) elements.push_back(FromDim(dim));
  c.set_value(0, PartialValue::Vector(std::move(elements)));
  return absl::OkStatus();
}

constexpr ShapeRule kRules[] = {
    {"Neg", UnaryValue<Negate>},
    {"Abs", UnaryValue<Absolute>},
    {"Square", UnaryValue<Squared>},
    {"LogicalNot", UnaryValue<Not>},
    {"Add", BinaryValue<Plus>},
    {"AddV2", BinaryValue<Plus>},
    {"Sub", BinaryValue<Minus>},
    {"Mul", BinaryValue<Times>},
    {"Div", BinaryValue<TruncatedQuotient>},
    {"RealDiv", BinaryValue<TruncatedQuotient>},
    {"TruncateDiv", BinaryValue<TruncatedQuotient>},
    {"FloorDiv", BinaryValue<FlooredQuotient>},
    {"FloorMod", BinaryValue<FlooredRemainder>},
    {"Maximum", BinaryValue<Larger>},
    {"Minimum", BinaryValue<Smaller>},
    {"Equal", BinaryValue<IsEqual>},
    {"NotEqual", BinaryValue<IsNotEqual>},
    {"Less", BinaryValue<IsLess>},
    {"LessEqual", BinaryValue<IsLessEqual>},
    {"Greater", BinaryValue<IsGreater>},
    {"GreaterEqual", BinaryValue<IsGreaterEqual>},
    {"LogicalAnd", BinaryValue<And>},
    {"LogicalOr", BinaryValue<Or>},
    {"Sum", ReducedValue<Plus>},
    {"Prod", ReducedValue<Times>},
    {"Max", ReducedValue<Larger>},
    {"Min", ReducedValue<Smaller>},
    {"All", ReducedValue<And>},
    {"Any", ReducedValue<Or>},
    {"Select", SelectValue},
    {"SelectV2", SelectValue},
    {"BroadcastArgs", BroadcastArgsValue},
};

}  // namespace

absl::Span<const ShapeRule> ArithmeticValueRules() { return kRules; }

}  // namespace optfarm::graph
