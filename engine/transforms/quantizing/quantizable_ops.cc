#include "engine/transforms/quantizing/quantizable_ops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
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

std::vector<QuantizableOp> MakeTable() {
  const auto elementwise = [](absl::string_view op, absl::string_view name) {
    return QuantizableOp{.op = std::string(op),
                         .quantized_op = absl::StrCat("Quantized", name),
                         .copied = {},
                         .code_types = {"T1", "T2"},
                         .result_type = "Toutput"};
  };
  const auto passing = [](absl::string_view op, absl::string_view type,
                          std::vector<std::string> copied, int plain_input) {
    return QuantizableOp{.op = std::string(op),
                         .quantized_op = absl::StrCat("Quantized", op),
                         .copied = std::move(copied),
                         .code_types = {std::string(type)},
                         .result_type = "",
                         .plain_input = plain_input};
  };
  QuantizableOp concat = passing("Concat", "T", {"N"}, 0);
  concat.has_separate_ranges = true;
  QuantizableOp matmul = elementwise("MatMul", "MatMul");
  matmul.copied = {"transpose_a", "transpose_b"};
  return {elementwise("Add", "Add"),
          elementwise("AddV2", "Add"),
          passing("AvgPool", "T", {"ksize", "strides", "padding"}, -1),
          {.op = "BiasAdd",
           .quantized_op = "QuantizedBiasAdd",
           .copied = {},
           .code_types = {"T1", "T2"},
           .result_type = "out_type"},
          concat,
          {.op = "Conv2D",
           .quantized_op = "QuantizedConv2D",
           .copied = {"strides", "padding"},
           .code_types = {"Tinput", "Tfilter"},
           .result_type = "out_type"},
          matmul,
          passing("MaxPool", "T", {"ksize", "strides", "padding"}, -1),
          elementwise("Mul", "Mul"),
          passing("Relu", "Tinput", {}, -1),
          passing("Relu6", "Tinput", {}, -1),
          passing("ResizeBilinear", "T", {"align_corners"}, 1),
          passing("Reshape", "T", {}, 1)};
}

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
  const bool is_conv = node.op() == "Conv2D";
  const std::string padding =
      graph::GetStringOr(node.def(), "padding", "").value_or("");
  if (padding != "SAME" && padding != "VALID") {
    return absl::StrCat("padding '", padding, "' has no 8-bit kernel");
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

const QuantizableOp* FindQuantizableOp(absl::string_view op) {
  static const auto* const kTable = new std::vector<QuantizableOp>(MakeTable());
  const auto it =
      std::find_if(kTable->begin(), kTable->end(),
                   [&](const QuantizableOp& entry) { return entry.op == op; });
  return it == kTable->end() ? nullptr : &*it;
}

QuantizationRules::QuantizationRules(const Graph& graph,
                                     const graph::ShapeMap& shapes)
    : graph_(graph), shapes_(shapes), in_loop_(NodesInLoops(graph)) {}

bool QuantizationRules::HasFloatTensors(const QuantizableOp& op,
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
    if (static_cast<int>(i) != op.plain_input &&
        (*inputs)[i] != tensorflow::DT_FLOAT) {
      return false;
    }
  }
  return std::all_of(outputs->begin(), outputs->end(), [](DataType type) {
    return type == tensorflow::DT_FLOAT;
  });
}

std::string QuantizationRules::WhyFloat(const QuantizableOp& op,
                                        NodeId id) const {
  if (in_loop_[id]) {
    return "it runs inside a loop, where ranges cannot be computed apart";
  }
  std::string reason = WhyFloatByAttributes(op, graph_.node(id));
  if (reason.empty()) reason = WhyFloatByInputs(op, graph_.node(id));
  return reason;
}

std::string QuantizationRules::WhyFloatByAttributes(
    const QuantizableOp& op, const graph::Node& node) const {
  for (const std::string& attribute : op.copied) {
    if (node.FindAttr(attribute) == nullptr) {
      return absl::StrCat("its attribute '", attribute,
                          "' is missing; run add_default_attributes first");
    }
  }
  if (DataFormat(node) != "NHWC") {
    return absl::StrCat("data_format ", DataFormat(node),
                        " has no 8-bit kernel");
  }
  if (node.op() == "ResizeBilinear" &&
      graph::GetBoolOr(node.def(), "half_pixel_centers", false)
          .value_or(true)) {
    return "QuantizedResizeBilinear does not know half_pixel_centers";
  }
  if (node.op() == "Conv2D" || node.op() == "MaxPool" ||
      node.op() == "AvgPool") {
    return WhyFloatByWindow(node);
  }
  return "";
}

std::string QuantizationRules::WhyFloatByInputs(const QuantizableOp& op,
                                                const graph::Node& node) const {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (static_cast<int>(i) == op.plain_input) continue;
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
  const bool broadcasts =
      op.quantized_op == "QuantizedAdd" || op.quantized_op == "QuantizedMul";
  if (broadcasts) {
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
