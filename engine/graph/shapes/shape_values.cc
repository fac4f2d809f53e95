// How whole-number values go through the ops that compute shapes: enough to
// follow Shape -> StridedSlice -> Mul -> Pack -> Reshape and the like, element
// by element, with unknown elements among known ones. A rule that does not
// apply sets nothing; it never fails. Arithmetic is in
// arithmetic_values.h.

#include "engine/graph/shapes/shape_values.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/shapes/shape_functions.h"
#include "engine/graph/strided_slice.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::graph {
namespace {

using value_rules::Element;
using value_rules::Elements;
using value_rules::FromDim;
using value_rules::Product;
using value_rules::SmallOutput;

// Joins inputs begin..end-1 along the first axis.
absl::Status JoinValues(ShapeContext& c, int begin, int end, Element axis) {
  const auto dims = SmallOutput(c, 0);
  if (!dims.has_value() || dims->empty() || !axis.has_value() ||
      (*axis != 0 && *axis != -static_cast<int64_t>(dims->size()))) {
    return absl::OkStatus();
  }
  Elements elements;
  bool any = false;
  for (int i = begin; i < end; ++i) {
    const PartialValue* in = c.value(i);
    const std::optional<int64_t> count = c.input(i).elements();
    if (!count.has_value() || *count > kMaxValueElements) {
      return absl::OkStatus();
    }
    any = any || in != nullptr;
    if (in != nullptr) {
      elements.insert(elements.end(), in->elements.begin(), in->elements.end());
    } else {
      elements.insert(elements.end(), *count, Element());
    }
  }
  if (any) c.set_value(0, {*dims, std::move(elements)});
  return absl::OkStatus();
}

}  // namespace

// --- Sources -----------------------------------------------------------------

absl::Status ConstValue(ShapeContext& c) {
  const tensorflow::AttrValue* value = FindAttr(c.node(), "value");
  if (value == nullptr || !value->has_tensor()) return absl::OkStatus();
  const auto dims = SmallOutput(c, 0);
  const auto integers = ReadIntegers(value->tensor(), kMaxValueElements);
  if (!dims.has_value() || !integers.has_value()) return absl::OkStatus();
  c.set_value(0, {*dims, Elements(integers->begin(), integers->end())});
  return absl::OkStatus();
}

absl::Status ShapeValue(ShapeContext& c) {
  for (int i = 0; i < c.output_count() && i < c.input_count(); ++i) {
    if (!c.input(i).has_rank()) continue;
    Elements elements;
    for (int64_t dim : c.input(i).dims()) elements.push_back(FromDim(dim));
    c.set_value(i, PartialValue::Vector(std::move(elements)));
  }
  return absl::OkStatus();
}

absl::Status RankValue(ShapeContext& c) {
  if (c.input(0).has_rank()) {
    c.set_value(0, PartialValue::Scalar(c.input(0).rank()));
  }
  return absl::OkStatus();
}

absl::Status SizeValue(ShapeContext& c) {
  if (c.input(0).elements().has_value()) {
    c.set_value(0, PartialValue::Scalar(c.input(0).elements()));
  }
  return absl::OkStatus();
}

absl::Status FillValue(ShapeContext& c) {
  const auto dims = SmallOutput(c, 0);
  if (!dims.has_value() || c.value(1) == nullptr) return absl::OkStatus();
  c.set_value(0, {*dims, Elements(Product(*dims), c.KnownScalar(1))});
  return absl::OkStatus();
}

namespace {

absl::Status ConstantLikeValue(ShapeContext& c, int64_t element) {
  const auto dims = SmallOutput(c, 0);
  const auto type = c.Type("T");
  if (!dims.has_value() || !type.ok() ||
      (*type != tensorflow::DT_INT32 && *type != tensorflow::DT_INT64)) {
    return absl::OkStatus();
  }
  c.set_value(0, {*dims, Elements(Product(*dims), element)});
  return absl::OkStatus();
}

}  // namespace

absl::Status OnesLikeValue(ShapeContext& c) { return ConstantLikeValue(c, 1); }

absl::Status ZerosLikeValue(ShapeContext& c) { return ConstantLikeValue(c, 0); }

absl::Status RangeValue(ShapeContext& c) {
  const auto dims = SmallOutput(c, 0);
  const Element start = c.KnownScalar(0);
  const Element delta = c.KnownScalar(2);
  if (!dims.has_value() || !start.has_value() || !delta.has_value()) {
    return absl::OkStatus();
  }
  Elements elements;
  // The last element is within the limit, so nothing overflows.
  for (int64_t i = 0; i < Product(*dims); ++i) {
    elements.push_back(*start + i * *delta);
  }
  c.set_value(0, PartialValue::Vector(std::move(elements)));
  return absl::OkStatus();
}

// --- The same elements in another shape --------------------------------------

absl::Status PassValue(ShapeContext& c) {
  for (int i = 0; i < c.output_count() && i < c.input_count(); ++i) {
    if (c.value(i) != nullptr) c.set_value(i, *c.value(i));
  }
  return absl::OkStatus();
}

absl::Status CastValue(ShapeContext& c) {
  const auto to = c.Type("DstT");
  if (!to.ok() || c.value(0) == nullptr ||
      (*to != tensorflow::DT_INT32 && *to != tensorflow::DT_INT64)) {
    return absl::OkStatus();
  }
  c.set_value(0, *c.value(0));
  return absl::OkStatus();
}

absl::Status ReshapeValue(ShapeContext& c) {
  const auto dims = SmallOutput(c, 0);
  const PartialValue* in = c.value(0);
  if (in != nullptr && dims.has_value() &&
      Product(*dims) == static_cast<int64_t>(in->elements.size())) {
    c.set_value(0, {*dims, in->elements});
  }
  return absl::OkStatus();
}

// --- Joining and cutting -----------------------------------------------------

absl::Status PackValue(ShapeContext& c) {
  const auto dims = SmallOutput(c, 0);
  const auto axis = c.Int("axis");
  if (!dims.has_value() || !axis.ok()) return absl::OkStatus();
  // Along the first axis the pieces follow each other.
  if (*axis != 0 && *axis != -static_cast<int64_t>(dims->size())) {
    return absl::OkStatus();
  }
  Elements elements;
  const int64_t piece = Product(*dims) / std::max(c.input_count(), 1);
  bool any = false;
  for (int i = 0; i < c.input_count(); ++i) {
    const PartialValue* in = c.value(i);
    any = any || in != nullptr;
    if (in != nullptr) {
      elements.insert(elements.end(), in->elements.begin(), in->elements.end());
    } else {
      elements.insert(elements.end(), piece, Element());
    }
  }
  if (any) c.set_value(0, {*dims, std::move(elements)});
  return absl::OkStatus();
}

absl::Status UnpackValue(ShapeContext& c) {
  const PartialValue* in = c.value(0);
  const auto axis = c.Int("axis");
  if (in == nullptr || in->rank() == 0 || !axis.ok() || c.output_count() == 0 ||
      in->dims[0] != c.output_count() || (*axis != 0 && *axis != -in->rank())) {
    return absl::OkStatus();
  }
  const std::vector<int64_t> dims(in->dims.begin() + 1, in->dims.end());
  const int64_t piece = Product(dims);
  for (int i = 0; i < c.output_count(); ++i) {
    const auto begin = in->elements.begin() + i * piece;
    c.set_value(i, {dims, Elements(begin, begin + piece)});
  }
  return absl::OkStatus();
}

absl::Status ConcatValue(ShapeContext& c) {
  return JoinValues(c, 1, c.input_count(), c.KnownScalar(0));
}

absl::Status ConcatV2Value(ShapeContext& c) {
  const int last = c.input_count() - 1;
  return JoinValues(c, 0, last, c.KnownScalar(last));
}

// Split and SplitV of vectors.
namespace {

absl::Status PartsValue(ShapeContext& c, int value_input, int axis_input) {
  const PartialValue* in = c.value(value_input);
  const Element axis = c.KnownScalar(axis_input);
  if (in == nullptr || in->rank() != 1 || axis.value_or(1) > 0 ||
      axis.value_or(1) < -1) {
    return absl::OkStatus();
  }
  int64_t at = 0;
  for (int i = 0; i < c.output_count(); ++i) {
    const auto dims = SmallOutput(c, i);
    if (!dims.has_value() || dims->size() != 1 ||
        at + (*dims)[0] > in->dims[0]) {
      return absl::OkStatus();
    }
    const auto begin = in->elements.begin() + at;
    c.set_value(i, PartialValue::Vector(Elements(begin, begin + (*dims)[0])));
    at += (*dims)[0];
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SplitValue(ShapeContext& c) { return PartsValue(c, 1, 0); }

absl::Status SplitVValue(ShapeContext& c) { return PartsValue(c, 0, 2); }

absl::Status SliceValue(ShapeContext& c) {
  const PartialValue* in = c.value(0);
  const Element begin = c.KnownScalar(1);
  const auto dims = SmallOutput(c, 0);
  if (in == nullptr || in->rank() != 1 || !dims.has_value() ||
      !begin.has_value() || *begin < 0 || *begin > in->dims[0] ||
      (*dims)[0] > in->dims[0] - *begin) {
    return absl::OkStatus();
  }
  const auto first = in->elements.begin() + *begin;
  c.set_value(0, PartialValue::Vector(Elements(first, first + (*dims)[0])));
  return absl::OkStatus();
}

absl::Status StridedSliceValue(ShapeContext& c) {
  const PartialValue* in = c.value(0);
  const auto dims = SmallOutput(c, 0);
  const auto strides = c.Known(3);
  if (in == nullptr || in->rank() != 1 || !dims.has_value() ||
      !strides.has_value()) {
    return absl::OkStatus();
  }
  StridedSliceSpec spec;
  spec.begin = c.Known(1);
  spec.end = c.Known(2);
  spec.strides = *strides;
  OPTFARM_ASSIGN_OR_RETURN(spec.begin_mask, c.Int("begin_mask"));
  OPTFARM_ASSIGN_OR_RETURN(spec.end_mask, c.Int("end_mask"));
  OPTFARM_ASSIGN_OR_RETURN(spec.ellipsis_mask, c.Int("ellipsis_mask"));
  OPTFARM_ASSIGN_OR_RETURN(spec.new_axis_mask, c.Int("new_axis_mask"));
  OPTFARM_ASSIGN_OR_RETURN(spec.shrink_axis_mask, c.Int("shrink_axis_mask"));
  OPTFARM_ASSIGN_OR_RETURN(const StridedSlicePlan plan,
                           PlanStridedSlice(PartialShape(in->dims), spec));
  const StridedSliceAxis& axis = plan.axes[0];
  if (!axis.begin.has_value() || axis.size == kUnknownDim) {
    return absl::OkStatus();
  }
  Elements elements;
  for (int64_t i = 0; i < axis.size; ++i) {
    elements.push_back(in->elements[*axis.begin + i * axis.stride]);
  }
  if (static_cast<int64_t>(elements.size()) == Product(*dims)) {
    c.set_value(0, {*dims, std::move(elements)});
  }
  return absl::OkStatus();
}

// Gather from a vector.
absl::Status GatherValue(ShapeContext& c) {
  const PartialValue* in = c.value(0);
  const PartialValue* indices = c.value(1);
  const auto dims = SmallOutput(c, 0);
  if (in == nullptr || indices == nullptr || in->rank() != 1 ||
      !dims.has_value() || (c.input_count() > 2 && c.KnownScalar(2) != 0)) {
    return absl::OkStatus();
  }
  Elements elements;
  for (const Element& index : indices->elements) {
    const bool usable =
        index.has_value() && *index >= 0 && *index < in->dims[0];
    elements.push_back(usable ? in->elements[*index] : Element());
  }
  if (static_cast<int64_t>(elements.size()) == Product(*dims)) {
    c.set_value(0, {*dims, std::move(elements)});
  }
  return absl::OkStatus();
}

absl::Status ReverseValue(ShapeContext& c) {
  const PartialValue* in = c.value(0);
  const auto axes = c.Known(1);
  if (in == nullptr || in->rank() != 1 || !axes.has_value() ||
      axes->size() != 1) {
    return absl::OkStatus();
  }
  c.set_value(0, PartialValue::Vector(
                     Elements(in->elements.rbegin(), in->elements.rend())));
  return absl::OkStatus();
}

absl::Status ListDiffValue(ShapeContext& c) {
  const auto x = c.Known(0);
  const auto y = c.Known(1);
  if (!x.has_value() || !y.has_value()) return absl::OkStatus();
  Elements out;
  Elements index;
  for (size_t i = 0; i < x->size(); ++i) {
    if (std::find(y->begin(), y->end(), (*x)[i]) != y->end()) continue;
    out.push_back((*x)[i]);
    index.push_back(static_cast<int64_t>(i));
  }
  c.set_value(0, PartialValue::Vector(std::move(out)));
  c.set_value(1, PartialValue::Vector(std::move(index)));
  return absl::OkStatus();
}

absl::Status InvertPermutationValue(ShapeContext& c) {
  const auto in = c.Known(0);
  if (!in.has_value()) return absl::OkStatus();
  const int64_t n = static_cast<int64_t>(in->size());
  Elements out(in->size());
  for (int64_t i = 0; i < n; ++i) {
    if ((*in)[i] < 0 || (*in)[i] >= n) return absl::OkStatus();
    out[(*in)[i]] = i;
  }
  c.set_value(0, PartialValue::Vector(std::move(out)));
  return absl::OkStatus();
}

// The first indices win in no order that matters: later ones overwrite.
absl::Status DynamicStitchValue(ShapeContext& c) {
  const auto dims = SmallOutput(c, 0);
  if (!dims.has_value() || dims->size() != 1) return absl::OkStatus();
  const int n = c.input_count() / 2;
  Elements out(Product(*dims));
  for (int i = 0; i < n; ++i) {
    const auto indices = c.Known(i);
    const PartialValue* data = c.value(i + n);
    if (!indices.has_value()) return absl::OkStatus();
    for (size_t k = 0; k < indices->size(); ++k) {
      const int64_t at = (*indices)[k];
      if (at < 0 || at >= (*dims)[0]) return absl::OkStatus();
      out[at] = data != nullptr && k < data->elements.size() ? data->elements[k]
                                                             : Element();
    }
  }
  c.set_value(0, PartialValue::Vector(std::move(out)));
  return absl::OkStatus();
}

// --- Choices -----------------------------------------------------------------

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

}  // namespace optfarm::graph
