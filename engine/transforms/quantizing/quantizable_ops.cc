#include "engine/transforms/quantizing/quantizable_ops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"
#include "engine/transforms/nodes/loop_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using graph::PartialShape;
using tensorflow::DataType;

// The shape without leading dimensions of size 1, which broadcasting adds.
PartialShape WithoutLeadingOnes(const PartialShape& shape) {
  int ones = 0;
  while (ones < shape.rank() && shape.dim(ones) == 1) ++ones;
  return shape.Slice(ones);
}

// Whether TensorFlow's QuantizedAdd and QuantizedMul can combine the two:
// alike, one of them a single number, or one the last dimensions of the other.
// What is not known counts as fitting.
bool IsSupportedBroadcast(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.elements() == 1 ||
      b.elements() == 1) {
    return true;
  }
  const PartialShape x = WithoutLeadingOnes(a);
  const PartialShape y = WithoutLeadingOnes(b);
  for (int i = 1; i <= std::min(x.rank(), y.rank()); ++i) {
    if (x.dim(-i) != graph::kUnknownDim && y.dim(-i) != graph::kUnknownDim &&
        x.dim(-i) != y.dim(-i)) {
      return false;
    }
  }
  return true;
}

// Whether the four numbers are 1, n, n, 1.
bool IsSpatial(const std::vector<int64_t>& values, bool is_square) {
  return values.size() == 4 && values[0] == 1 && values[3] == 1 &&
         (!is_square || values[1] == values[2]);
}

std::string WhyFloatByWindow(const graph::Node& node) {
  const bool is_conv = graph::IsFloatProduct(node.op());
  if (!graph::IsSameOrValid(node.def())) {
    return absl::StrCat("padding '", graph::PaddingText(node.def()),
                        "' has no 8-bit kernel");
  }
  if (!IsSpatial(graph::GetInts(node.def(), "strides")
                     .value_or(std::vector<int64_t>()),
                 is_conv)) {
    return is_conv ? "QuantizedConv2D needs equal strides in both directions"
                   : "it strides over batch or channels";
  }
  if (!is_conv &&
      !IsSpatial(
          graph::GetInts(node.def(), "ksize").value_or(std::vector<int64_t>()),
          false)) {
    return "it pools over batch or channels";
  }
  const std::vector<int64_t> dilations =
      graph::GetIntsOr(node.def(), "dilations", {})
          .value_or(std::vector<int64_t>{0});
  if (std::any_of(dilations.begin(), dilations.end(),
                  [](int64_t d) { return d != 1; })) {
    return "QuantizedConv2D cannot be dilated";
  }
  return "";
}

// Whether a float constant holds values that no range can hold.
bool HasBadValues(const graph::Node& node) {
  const absl::StatusOr<runtime::Tensor> value = FloatConstValue(node);
  if (!value.ok()) return true;
  const absl::Span<const float> values = value->flat<float>();
  return std::any_of(values.begin(), values.end(),
                     [](float v) { return !std::isfinite(v); });
}

}  // namespace

const graph::QuantizedForm* FindQuantizedForm(absl::string_view op) {
  const graph::QuantizedForm* form = graph::RowOf(op).quantized;
  return form == nullptr || form->value_types.empty() ? nullptr : form;
}

std::vector<absl::string_view> AttributesOf(absl::string_view list) {
  return absl::StrSplit(list, ',', absl::SkipEmpty());
}

QuantizationRules::QuantizationRules(const Graph& graph,
                                     const graph::ShapeMap& shapes)
    : graph_(graph), shapes_(shapes), in_loop_(NodesInLoops(graph)) {}

bool QuantizationRules::HasFloatTensors(const graph::QuantizedForm& form,
                                        NodeId id) const {
  const graph::Node& node = graph_.node(id);
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) return false;
  const absl::StatusOr<std::vector<DataType>> inputs =
      graph::InputTypes(*op_def, node.def());
  const absl::StatusOr<std::vector<DataType>> outputs =
      graph::OutputTypes(*op_def, node.def());
  if (!inputs.ok() || !outputs.ok() || outputs->empty() ||
      inputs->size() != node.inputs().size()) {
    return false;
  }
  for (size_t i = 0; i < inputs->size(); ++i) {
    if (static_cast<int>(i) != form.plain_input &&
        (*inputs)[i] != tensorflow::DT_FLOAT) {
      return false;
    }
  }
  return std::all_of(outputs->begin(), outputs->end(), [](DataType type) {
    return type == tensorflow::DT_FLOAT;
  });
}

std::string QuantizationRules::WhyFloat(const graph::QuantizedForm& form,
                                        NodeId id) const {
  if (in_loop_[id]) {
    return "it runs inside a loop, where ranges cannot be computed apart";
  }
  std::string reason = WhyFloatByAttributes(form, graph_.node(id));
  if (reason.empty()) reason = WhyFloatByInputs(form, graph_.node(id));
  return reason;
}

std::string QuantizationRules::WhyFloatByAttributes(
    const graph::QuantizedForm& form, const graph::Node& node) const {
  for (absl::string_view attribute : AttributesOf(form.copied)) {
    if (node.FindAttr(attribute) == nullptr) {
      return absl::StrCat("its attribute '", attribute,
                          "' is missing; run add_default_attributes first");
    }
  }
  if (!graph::IsNhwc(node.def())) {
    return absl::StrCat("data_format ", graph::DataFormatText(node.def()),
                        " has no 8-bit kernel");
  }
  if (graph::GetBoolOr(node.def(), "half_pixel_centers", false)
          .value_or(true)) {
    return absl::StrCat(form.op, " does not know half_pixel_centers");
  }
  if (absl::c_linear_search(AttributesOf(form.copied), "strides")) {
    return WhyFloatByWindow(node);
  }
  return "";
}

std::string QuantizationRules::WhyFloatByInputs(
    const graph::QuantizedForm& form, const graph::Node& node) const {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (static_cast<int>(i) == form.plain_input) continue;
    const Endpoint& input = node.inputs()[i];
    if (shapes_.Of(input).elements() == 0) {
      return absl::StrCat("its input ", i, " is empty and has no range");
    }
    const graph::Node& source = graph_.node(input.node);
    if (IsConst(source) && HasBadValues(source)) {
      return absl::StrCat("its input '", source.name(),
                          "' holds NaN or infinite values");
    }
  }
  const graph::OpRole role = graph::RowOf(node.op()).role;
  if (role == graph::OpRole::kAdd || role == graph::OpRole::kMultiply) {
    const PartialShape& a = shapes_.Of(node.inputs()[0]);
    const PartialShape& b = shapes_.Of(node.inputs()[1]);
    if (!IsSupportedBroadcast(a, b)) {
      return absl::StrCat("its 8-bit kernel cannot combine shapes ",
                          a.ToString(), " and ", b.ToString());
    }
  }
  return "";
}

}  // namespace optfarm::transforms
