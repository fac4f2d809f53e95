// The node as a shape function sees it.

#include "engine/graph/shapes/shape_context.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::graph {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::NodeDef;
using tensorflow::OpDef;

ShapeContext::ShapeContext(const OpDef& op_def, const NodeDef& node,
                           std::vector<const Tensor*> inputs, int output_count,
                           int producer)
    : op_def_(op_def),
      node_(node),
      inputs_(std::move(inputs)),
      outputs_(output_count),
      producer_(producer) {}

const PartialValue* ShapeContext::value(int i) const {
  const std::optional<PartialValue>& value = inputs_[i]->value;
  return value.has_value() ? &*value : nullptr;
}

std::optional<std::vector<int64_t>> ShapeContext::Known(int i) const {
  const PartialValue* partial = value(i);
  if (partial == nullptr) return std::nullopt;
  std::vector<int64_t> known;
  known.reserve(partial->elements.size());
  for (const std::optional<int64_t>& element : partial->elements) {
    if (!element.has_value()) return std::nullopt;
    known.push_back(*element);
  }
  return known;
}

std::optional<int64_t> ShapeContext::KnownScalar(int i) const {
  const PartialValue* partial = value(i);
  if (partial == nullptr || partial->elements.size() != 1) return std::nullopt;
  return partial->elements[0];
}

absl::StatusOr<PartialShape> ShapeContext::ShapeFromInput(int i) const {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape carrier,
                           WithRankAtMost(input(i), 1));
  const PartialValue* partial = value(i);
  if (carrier.has_rank() && carrier.rank() == 0) {
    // A scalar is a shape only in the form -1: any shape.
    if (partial != nullptr && partial->elements[0].value_or(-1) != -1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a shape must be a vector, not the number ", *partial->elements[0]));
    }
    return PartialShape::Unknown();
  }
  if (partial == nullptr) {
    if (!carrier.has_rank() || carrier.dim(0) == kUnknownDim) {
      return PartialShape::Unknown();
    }
    if (carrier.dim(0) > kMaxRank) {
      return absl::InvalidArgumentError(
          absl::StrCat("a shape of rank ", carrier.dim(0), " is too large"));
    }
    return PartialShape::OfRank(static_cast<int>(carrier.dim(0)));
  }
  if (partial->elements.size() > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a shape of rank ", partial->elements.size(), " is too large"));
  }
  std::vector<int64_t> dims;
  for (const std::optional<int64_t>& element : partial->elements) {
    const int64_t dim = element.value_or(kUnknownDim);
    if (dim < kUnknownDim) {
      return absl::InvalidArgumentError(
          absl::StrCat("a shape cannot have the dimension ", dim));
    }
    dims.push_back(dim);
  }
  return PartialShape(std::move(dims));
}

absl::StatusOr<int64_t> ShapeContext::DimFromInput(int i) const {
  OPTFARM_RETURN_IF_ERROR(WithRank(input(i), 0).status());
  const std::optional<int64_t> known = KnownScalar(i);
  if (!known.has_value()) return kUnknownDim;
  if (*known < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a dimension cannot be ", *known));
  }
  return *known;
}

absl::StatusOr<const AttrValue*> ShapeContext::Attr(
    absl::string_view name, AttrValue::ValueCase kind) const {
  const AttrValue* value = FindAttrOrDefault(op_def_, node_, name);
  if (value == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' is missing"));
  }
  if (value->value_case() != kind) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' has the wrong kind"));
  }
  return value;
}

absl::StatusOr<int64_t> ShapeContext::Int(absl::string_view name) const {
  OPTFARM_ASSIGN_OR_RETURN(const AttrValue* value, Attr(name, AttrValue::kI));
  return value->i();
}

absl::StatusOr<bool> ShapeContext::Bool(absl::string_view name) const {
  OPTFARM_ASSIGN_OR_RETURN(const AttrValue* value, Attr(name, AttrValue::kB));
  return value->b();
}

absl::StatusOr<std::string> ShapeContext::String(absl::string_view name) const {
  OPTFARM_ASSIGN_OR_RETURN(const AttrValue* value, Attr(name, AttrValue::kS));
  return value->s();
}

absl::StatusOr<DataFormat> ShapeContext::ReadDataFormat() const {
  if (FindAttrDef(op_def_, "data_format") == nullptr) return DataFormat::kNhwc;
  OPTFARM_ASSIGN_OR_RETURN(const std::string text, String("data_format"));
  return ParseDataFormat(text);
}

absl::StatusOr<Padding> ShapeContext::ReadPadding() const {
  OPTFARM_ASSIGN_OR_RETURN(const std::string text, String("padding"));
  return ParsePadding(text);
}

absl::StatusOr<DataType> ShapeContext::Type(absl::string_view name) const {
  OPTFARM_ASSIGN_OR_RETURN(const AttrValue* value,
                           Attr(name, AttrValue::kType));
  return value->type();
}

absl::StatusOr<std::vector<int64_t>> ShapeContext::Ints(
    absl::string_view name) const {
  OPTFARM_ASSIGN_OR_RETURN(const AttrValue* value,
                           Attr(name, AttrValue::kList));
  return std::vector<int64_t>(value->list().i().begin(),
                              value->list().i().end());
}

absl::StatusOr<PartialShape> ShapeContext::Shape(absl::string_view name) const {
  OPTFARM_ASSIGN_OR_RETURN(const AttrValue* value,
                           Attr(name, AttrValue::kShape));
  return PartialShape::FromProto(value->shape());
}

absl::StatusOr<std::vector<PartialShape>> ShapeContext::Shapes(
    absl::string_view name) const {
  std::vector<PartialShape> shapes;
  const AttrValue* value = FindAttrOrDefault(op_def_, node_, name);
  if (value == nullptr) return shapes;
  for (const tensorflow::TensorShapeProto& proto : value->list().shape()) {
    OPTFARM_ASSIGN_OR_RETURN(PartialShape shape,
                             PartialShape::FromProto(proto));
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

void ShapeContext::set_output(int i, PartialShape shape) {
  outputs_[i].shape = std::move(shape);
}

void ShapeContext::set_value(int i, PartialValue value) {
  if (value.elements.size() > kMaxValueElements) return;
  const PartialShape shape(value.dims);
  if (shape.elements() != static_cast<int64_t>(value.elements.size()) ||
      !MergeShapes(shape, outputs_[i].shape).ok()) {
    return;
  }
  outputs_[i].shape = shape;
  outputs_[i].value = std::move(value);
}

void ShapeContext::set_variable_shape(int i, PartialShape shape) {
  outputs_[i].variable_shape = std::move(shape);
}

absl::StatusOr<int64_t> WindowedSize(int64_t input, const Window& window,
                                     Padding padding) {
  if (window.stride < 1 || window.dilation < 1 || window.size == 0 ||
      window.size < kUnknownDim) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a window of size ", window.size, " with stride ", window.stride,
        " and dilation ", window.dilation, " is not possible"));
  }
  if (input == kUnknownDim) return kUnknownDim;
  if (padding == Padding::kSame) {
    return input / window.stride + (input % window.stride != 0 ? 1 : 0);
  }
  if (window.size == kUnknownDim) return kUnknownDim;
  int64_t padded = input;
  if (padding == Padding::kExplicit) {
    if (window.pad_before < 0 || window.pad_after < 0) {
      return absl::InvalidArgumentError("explicit padding is negative");
    }
    OPTFARM_ASSIGN_OR_RETURN(padded, AddDims(padded, window.pad_before));
    OPTFARM_ASSIGN_OR_RETURN(padded, AddDims(padded, window.pad_after));
  }
  OPTFARM_ASSIGN_OR_RETURN(int64_t extent,
                           MultiplyDims(window.size - 1, window.dilation));
  OPTFARM_ASSIGN_OR_RETURN(extent, AddDims(extent, 1));
  if (padded >= extent) return (padded - extent) / window.stride + 1;
  // TensorFlow lets an output of size 0 pass, but nothing smaller.
  if (extent - padded <= window.stride) return 0;
  return absl::InvalidArgumentError(
      absl::StrCat("a window of ", extent, " does not fit into ", padded));
}

}  // namespace optfarm::graph
