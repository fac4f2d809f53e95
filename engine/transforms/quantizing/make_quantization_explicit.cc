// make_quantization_explicit: turns ops on quantized values with ranges
// (QuantizeV2, QuantizedConv2DWithBias..., Requantize, Dequantize) into float
// ops between QuantizeLinear and DequantizeLinear, with a scale and a zero
// point in place of a minimum and a maximum. That is the form of ONNX and of
// TensorFlow Lite, and what their writers take.
//
//   QuantizedConv2DWithBiasAndReluAndRequantize(x, w, b, ranges)
//   becomes QuantizeLinear(Relu(BiasAdd(Conv2D(DequantizeLinear(x),
//           DequantizeLinear(w)), DequantizeLinear(b))))
//
// Weights stay as they are, with a scale for each output channel; biases become
// int32 in steps of input times weights; accumulators become floats. Ops that
// only move values work on the quantized values themselves. A tensor whose
// range is found at each run stays in float.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"
#include "engine/runtime/reference/quantized/quantized_arithmetic.h"
#include "engine/transforms/freezing/known_ranges.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/nodes/static_shapes.h"
#include "engine/transforms/nodes/unused_nodes.h"
#include "engine/transforms/quantizing/explicit_layers.h"
#include "engine/transforms/quantizing/explicit_values.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

bool HasType(const graph::Node& node, absl::string_view attribute,
             tensorflow::DataType type) {
  return graph::GetType(node.def(), attribute)
             .value_or(tensorflow::DT_INVALID) == type;
}

class QuantizationMaker {
 public:
  QuantizationMaker(const graph::ShapeMap& shapes, ActivationForm form,
                    TransformContext* context, Graph* graph)
      : graph_(*graph),
        shapes_(shapes),
        context_(*context),
        values_(form, graph) {}

  // ERRORS: those of what has no explicit form, naming the node.
  absl::Status Make(NodeId id) {
    values_.Begin(id);
    const absl::Status status = Dispatch(id);
    if (!status.ok()) {
      const graph::Node& node = graph_.node(id);
      return Annotate(
          status, absl::StrCat("node '", node.name(), "' (", node.op(), ")"));
    }
    return absl::OkStatus();
  }

  // What has been replaced.
  std::vector<NodeId> TakeReplaced() { return std::move(replaced_); }

 private:
  const graph::Node& node(NodeId id) const { return graph_.node(id); }

  absl::Status Dispatch(NodeId id);
  absl::Status Quantize(NodeId id);
  absl::Status Dequantize(NodeId id);
  absl::Status DequantizeWeights(NodeId id, const runtime::Range& range);
  absl::Status Layer(NodeId id);
  absl::Status Requantize(NodeId id);
  absl::Status Arithmetic(NodeId id, absl::string_view op);
  absl::Status KeptRange(NodeId id, absl::string_view op);
  absl::Status Reshape(NodeId id);
  absl::Status Concat(NodeId id);
  absl::Status Bitcast(NodeId id);
  absl::Status Move(NodeId id);
  std::optional<int32_t> FillingOf(Endpoint input) const;
  Endpoint AddFilling(int32_t byte, bool is_float);

  // The values of `old` are floats, to be quantized to a range.
  void SetResult(NodeId id, Endpoint floats, Endpoint min, Endpoint max,
                 bool includes_zero);
  absl::StatusOr<Endpoint> FloatsOf(Endpoint old);
  void Done(NodeId id) {
    replaced_.push_back(id);
    context_.CountChange();
  }

  Graph& graph_;
  const graph::ShapeMap& shapes_;
  TransformContext& context_;
  ExplicitValues values_;
  std::vector<NodeId> replaced_;
};

absl::StatusOr<Endpoint> QuantizationMaker::FloatsOf(Endpoint old) {
  const std::optional<Endpoint> floats = values_.FloatsOf(old);
  if (floats.has_value()) return *floats;
  return absl::UnimplementedError(
      absl::StrCat("it reads the quantized values '", graph_.NameOf(old),
                   "', whose range is not known or which are fed"));
}

void QuantizationMaker::SetResult(NodeId id, Endpoint floats, Endpoint min,
                                  Endpoint max, bool includes_zero) {
  std::optional<runtime::Range> range = KnownRange(graph_, min, max);
  if (range.has_value() && includes_zero) range = runtime::WithZero(*range);
  const auto quantization =
      range.has_value() ? values_.QuantizationFor(*range) : std::nullopt;
  if (quantization.has_value()) {
    values_.SetQuantized({id, 0}, values_.Quantize(floats, *quantization));
    return;
  }
  values_.SetFloats({id, 0}, floats);
  context_.Skip(node(id).name(),
                "its range is found at each run, so its values stay in float");
}

// --- Between floats and quantized values -------------------------------------

absl::Status QuantizationMaker::Quantize(NodeId id) {
  const graph::Node& quantize = node(id);
  if (quantize.inputs().size() != 3) {
    return absl::InvalidArgumentError("it does not have 3 inputs");
  }
  const Endpoint floats = quantize.inputs()[0];
  if (HasType(quantize, "T", tensorflow::DT_QINT32)) {
    values_.SetFloats({id, 0}, floats);
  } else if (IsQuantize(quantize, tensorflow::DT_QUINT8)) {
    std::optional<runtime::Range> range =
        KnownRange(graph_, quantize.inputs()[1], quantize.inputs()[2]);
    if (range.has_value()) range = runtime::WidenedForQuantize(*range);
    const auto quantization =
        range.has_value() ? values_.QuantizationFor(*range) : std::nullopt;
    if (quantization.has_value()) {
      values_.SetQuantized({id, 0}, values_.Quantize(floats, *quantization));
    } else {
      values_.SetFloats({id, 0}, floats);
      context_.Skip(quantize.name(),
                    "its range is found at each run, so its values stay in "
                    "float");
    }
  } else {
    return absl::UnimplementedError(
        "only quantization to quint8 in mode MIN_FIRST has an explicit form");
  }
  Done(id);
  return absl::OkStatus();
}

// Weights that are stored in 8 bits and used in float.
absl::Status QuantizationMaker::DequantizeWeights(NodeId id,
                                                  const runtime::Range& range) {
  const graph::Node& dequantize = node(id);
  OPTFARM_ASSIGN_OR_RETURN(const Tensor stored,
                           ConstValue(node(dequantize.inputs()[0].node)));
  const auto quantization = QuantizationOfRange(range);
  if (!quantization.has_value() || !IsDequantize(dequantize) ||
      stored.dtype() != tensorflow::DT_QUINT8) {
    context_.Skip(dequantize.name(), "its weights have no zero point");
    return absl::OkStatus();
  }
  const Endpoint floats = values_.AddDequantized(
      absl::StrCat(dequantize.name(), "/weights"),
      stored.Reinterpreted(tensorflow::DT_UINT8), {quantization->scale}, -1,
      quantization->zero_point);
  graph_.RedirectUses({id, 0}, floats);
  Done(id);
  return absl::OkStatus();
}

absl::Status QuantizationMaker::Dequantize(NodeId id) {
  const graph::Node& dequantize = node(id);
  if (dequantize.inputs().size() != 3) {
    return absl::InvalidArgumentError("it does not have 3 inputs");
  }
  const Endpoint source = dequantize.inputs()[0];
  if (!values_.Has(source) && IsConst(node(source.node))) {
    const auto range =
        KnownRange(graph_, dequantize.inputs()[1], dequantize.inputs()[2]);
    if (range.has_value()) return DequantizeWeights(id, *range);
    context_.Skip(dequantize.name(), "the range of its weights is computed");
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint floats, FloatsOf(source));
  if (!context_.IsOutput(dequantize.name())) {
    graph_.RedirectUses({id, 0}, floats);
    graph_.RedirectControlUses(id, floats.node);
    Done(id);
    return absl::OkStatus();
  }
  // The model's output keeps its node.
  tensorflow::NodeDef* def = graph_.mutable_node(id)->mutable_def();
  def->set_op("Identity");
  def->clear_attr();
  graph::SetType(def, "T", tensorflow::DT_FLOAT);
  graph_.SetInputs(id, {floats});
  context_.CountChange();
  return absl::OkStatus();
}

absl::Status QuantizationMaker::Requantize(NodeId id) {
  const graph::Node& requantize = node(id);
  if (requantize.inputs().size() != 5) {
    return absl::InvalidArgumentError("it does not have 5 inputs");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint floats,
                           FloatsOf(requantize.inputs()[0]));
  SetResult(id, floats, requantize.inputs()[3], requantize.inputs()[4],
            !graph::HasRole(requantize.op(), graph::OpRole::kRequantize));
  Done(id);
  return absl::OkStatus();
}

// --- Arithmetic --------------------------------------------------------------

absl::Status QuantizationMaker::Layer(NodeId id) {
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint result,
                           AddExplicitLayer(id, shapes_, &values_));
  const graph::Node& layer = node(id);
  switch (graph::RowOf(layer.op()).layer.result) {
    case graph::LayerResult::kAccumulators:
      values_.SetFloats({id, 0}, result);
      break;
    case graph::LayerResult::kFloats:
      graph_.RedirectUses({id, 0}, result);
      break;
    case graph::LayerResult::kQuantizedValues: {
      const absl::Span<const Endpoint> inputs = layer.inputs();
      SetResult(id, result, inputs[inputs.size() - 2],
                inputs[inputs.size() - 1], true);
      break;
    }
  }
  Done(id);
  return absl::OkStatus();
}

// A sum or product of two tensors; the result is an accumulator.
absl::Status QuantizationMaker::Arithmetic(NodeId id, absl::string_view op) {
  if (node(id).inputs().size() != 6) {
    return absl::InvalidArgumentError("it does not have 6 inputs");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint x, FloatsOf(node(id).inputs()[0]));
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint y, FloatsOf(node(id).inputs()[1]));
  const NodeId sum = values_.Add(absl::StrCat(node(id).name(), "/floats"), op,
                                 {x, y}, tensorflow::DT_FLOAT);
  values_.SetFloats({id, 0}, {sum, 0});
  Done(id);
  return absl::OkStatus();
}

// Ops on one tensor whose result has the input's range, such as pools.
absl::Status QuantizationMaker::KeptRange(NodeId id, absl::string_view op) {
  const Endpoint source = node(id).inputs()[0];
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint x, FloatsOf(source));
  const ExplicitTensor* before = values_.QuantizedOf(source);
  tensorflow::NodeDef def =
      MakeNode(absl::StrCat(node(id).name(), "/floats"), op, node(id));
  graph::SetType(&def, "T", tensorflow::DT_FLOAT);
  CopyAttributes(
      node(id),
      {"ksize", "strides", "padding", "align_corners", "half_pixel_centers"},
      &def);
  std::vector<Endpoint> inputs = {x};
  if (graph::RowOf(node(id).op()).range_input == 2) {
    inputs.push_back(node(id).inputs()[1]);
  }
  const Endpoint result = {values_.Add(std::move(def), inputs), 0};
  if (before == nullptr) {
    values_.SetFloats({id, 0}, result);
  } else {
    const LinearQuantization same = before->quantization;
    values_.SetQuantized({id, 0}, values_.Quantize(result, same));
  }
  Done(id);
  return absl::OkStatus();
}

// --- Moving values -----------------------------------------------------------

absl::Status QuantizationMaker::Reshape(NodeId id) {
  const Endpoint source = node(id).inputs()[0];
  const Endpoint shape = node(id).inputs()[1];
  const ExplicitTensor* before = values_.QuantizedOf(source);
  tensorflow::NodeDef def =
      MakeNode(absl::StrCat(node(id).name(), "/reshaped"), "Reshape", node(id));
  CopyAttributes(node(id), {"Tshape"}, &def);
  if (before != nullptr) {
    const ExplicitTensor from = *before;
    graph::SetType(&def, "T", values_.type());
    const NodeId moved = values_.Add(std::move(def), {from.values, shape});
    values_.SetQuantized({id, 0}, {{moved, 0}, from.quantization});
  } else {
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint floats, FloatsOf(source));
    graph::SetType(&def, "T", tensorflow::DT_FLOAT);
    values_.SetFloats({id, 0},
                      {values_.Add(std::move(def), {floats, shape}), 0});
  }
  Done(id);
  return absl::OkStatus();
}

// Joins quantized values of one scale as they are, others in float.
absl::Status QuantizationMaker::Concat(NodeId id) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t n, graph::GetInt(node(id).def(), "N"));
  const absl::Span<const Endpoint> inputs = node(id).inputs();
  if (n < 1 || static_cast<int64_t>(inputs.size()) != 3 * n + 1) {
    return absl::InvalidArgumentError("its attribute N is wrong");
  }
  const bool is_v2 = !graph::RowOf(node(id).op()).has_axis_first;
  const size_t first = is_v2 ? 0 : 1;
  const auto count = static_cast<size_t>(n);
  std::vector<Endpoint> quantized, floats;
  const ExplicitTensor* one = values_.QuantizedOf(inputs[first]);
  bool are_alike = one != nullptr;
  for (size_t i = 0; i < count; ++i) {
    const ExplicitTensor* part = values_.QuantizedOf(inputs[first + i]);
    are_alike =
        are_alike && part != nullptr && part->quantization == one->quantization;
    if (are_alike) quantized.push_back(part->values);
  }
  const Endpoint axis = inputs[is_v2 ? count : 0];
  tensorflow::NodeDef def =
      MakeNode(absl::StrCat(node(id).name(), "/joined"), "ConcatV2", node(id));
  graph::SetInt(&def, "N", n);
  graph::SetType(&def, "Tidx", tensorflow::DT_INT32);
  CopyAttributes(node(id), {"Tidx"}, &def);
  if (are_alike) {
    const LinearQuantization same = one->quantization;
    quantized.push_back(axis);
    graph::SetType(&def, "T", values_.type());
    const NodeId joined = values_.Add(std::move(def), quantized);
    values_.SetQuantized({id, 0}, {{joined, 0}, same});
    Done(id);
    return absl::OkStatus();
  }
  std::optional<runtime::Range> all = runtime::Range{0.0f, 0.0f};
  for (size_t i = 0; i < count; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint part, FloatsOf(inputs[first + i]));
    floats.push_back(part);
    const auto range =
        KnownRange(graph_, inputs[1 + count + i], inputs[1 + 2 * count + i]);
    if (!range.has_value()) all.reset();
    if (!all.has_value()) continue;
    all->min = std::min(all->min, range->min);
    all->max = std::max(all->max, range->max);
  }
  floats.push_back(axis);
  graph::SetType(&def, "T", tensorflow::DT_FLOAT);
  const Endpoint joined = {values_.Add(std::move(def), floats), 0};
  const auto to =
      all.has_value() ? values_.QuantizationFor(*all) : std::nullopt;
  if (to.has_value()) {
    values_.SetQuantized({id, 0}, values_.Quantize(joined, *to));
  } else {
    values_.SetFloats({id, 0}, joined);
  }
  Done(id);
  return absl::OkStatus();
}

// Between quantized values and their bytes.
absl::Status QuantizationMaker::Bitcast(NodeId id) {
  const Endpoint source = node(id).inputs()[0];
  if (const ExplicitTensor* tensor = values_.QuantizedOf(source)) {
    values_.SetQuantized({id, 0}, ExplicitTensor(*tensor));
  } else {
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint floats, FloatsOf(source));
    values_.SetFloats({id, 0}, floats);
  }
  Done(id);
  return absl::OkStatus();
}

// The byte that a Pad fills up with, counted from 0; nullopt for other inputs.
std::optional<int32_t> QuantizationMaker::FillingOf(Endpoint input) const {
  if (node(input.node).op() == "Bitcast") input = node(input.node).inputs()[0];
  const graph::Node& constant = node(input.node);
  if (!IsConst(constant)) return std::nullopt;
  const absl::StatusOr<Tensor> value = ConstValue(constant);
  if (!value.ok() || value->num_elements() != 1 ||
      (value->dtype() != tensorflow::DT_QUINT8 &&
       value->dtype() != tensorflow::DT_UINT8)) {
    return std::nullopt;
  }
  return value->data<uint8_t>()[0];
}

// What quantize_layers fills up with stands for zero (33).
Endpoint QuantizationMaker::AddFilling(int32_t byte, bool is_float) {
  const bool is_symmetric = values_.form() == ActivationForm::kSymmetric;
  const int32_t value = is_symmetric ? 0 : byte - values_.offset();
  const Tensor filling =
      is_float                                 ? Tensor::Scalar<float>(0.0f)
      : values_.type() == tensorflow::DT_INT16 ? Tensor::Scalar<int16_t>(0)
      : values_.type() == tensorflow::DT_INT8
          ? Tensor::Scalar<int8_t>(static_cast<int8_t>(value))
          : Tensor::Scalar<uint8_t>(static_cast<uint8_t>(value));
  return values_.AddConst("eightbit/filling", filling);
}

// An op on bytes, such as Pad or Transpose. What it fills up with is quantized
// like the rest.
absl::Status QuantizationMaker::Move(NodeId id) {
  const ExplicitTensor* before = values_.QuantizedOf(node(id).inputs()[0]);
  std::vector<Endpoint> inputs(node(id).inputs().begin(),
                               node(id).inputs().end());
  const bool is_float = before == nullptr;
  const LinearQuantization same =
      is_float ? LinearQuantization() : before->quantization;
  for (Endpoint& input : inputs) {
    if (const auto filling = FillingOf(input)) {
      input = AddFilling(*filling, is_float);
    } else if (const ExplicitTensor* tensor = values_.QuantizedOf(input);
               tensor != nullptr && !is_float) {
      input = tensor->values;
    } else if (values_.Has(input)) {
      OPTFARM_ASSIGN_OR_RETURN(input, FloatsOf(input));
    }
  }
  tensorflow::NodeDef def = node(id).def();
  def.set_name(absl::StrCat(node(id).name(), "/moved"));
  graph::SetType(&def, "T", is_float ? tensorflow::DT_FLOAT : values_.type());
  const Endpoint moved = {values_.Add(std::move(def), inputs), 0};
  if (is_float) {
    values_.SetFloats({id, 0}, moved);
  } else {
    values_.SetQuantized({id, 0}, {moved, same});
  }
  Done(id);
  return absl::OkStatus();
}

absl::Status QuantizationMaker::Dispatch(NodeId id) {
  const graph::Node& at = node(id);
  const graph::OpRow& row = graph::RowOf(at.op());
  if (row.layer.is_quantized) return Layer(id);
  switch (row.role) {
    case graph::OpRole::kQuantize:
      return Quantize(id);
    case graph::OpRole::kDequantize:
      return Dequantize(id);
    case graph::OpRole::kRequantize:
    case graph::OpRole::kRequantizePerChannel:
      return Requantize(id);
    case graph::OpRole::kRequantizationRange:
    case graph::OpRole::kRequantizationRangePerChannel:
      replaced_.push_back(id);
      return absl::OkStatus();
    case graph::OpRole::kQuantizedConcat:
      return Concat(id);
    default:
      break;
  }
  if (row.flow == graph::ValueFlow::kReshaping && row.keeps_range) {
    return Reshape(id);
  }
  if (!row.float_op.empty()) {
    return row.keeps_range ? KeptRange(id, row.float_op)
                           : Arithmetic(id, row.float_op);
  }
  if (at.inputs().empty() || !values_.Has(at.inputs()[0])) {
    if (row.range_input < 0) return absl::OkStatus();
    return absl::UnimplementedError("the op has no explicit form");
  }
  if (at.op() == "Bitcast") return Bitcast(id);
  if (row.moves_bytes) return Move(id);
  return absl::UnimplementedError(
      "it reads quantized values and has no explicit form");
}

absl::StatusOr<ActivationForm> FormOf(const std::string& type) {
  if (type == "int8") return ActivationForm::kInt8;
  if (type == "uint8") return ActivationForm::kUint8;
  if (type == "symmetric") return ActivationForm::kSymmetric;
  if (type == "int16") return ActivationForm::kInt16;
  return absl::InvalidArgumentError(absl::StrCat(
      "type is ", type, ", expected int8, uint8, symmetric or int16"));
}

absl::Status MakeQuantizationExplicit(Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const ActivationForm form,
                           FormOf(context->arguments().String("type")));
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           InferShapesWithInputs(*graph, *context));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(*graph));
  QuantizationMaker maker(shapes, form, context, graph);
  for (NodeId id : order) OPTFARM_RETURN_IF_ERROR(maker.Make(id));
  RemoveUnusedWithInputs(maker.TakeReplaced(), *context, graph);
  return absl::OkStatus();
}

}  // namespace

TransformDef MakeQuantizationExplicitTransform() {
  return {.name = "make_quantization_explicit",
          .summary =
              "Turns ops on quantized values into float ops between "
              "QuantizeLinear and DequantizeLinear, as ONNX and TensorFlow "
              "Lite have them.",
          .parameters = {{.name = "type",
                          .help = "Quantized activations: int8, uint8, "
                                  "symmetric (int8 with zero point 0) or "
                                  "int16 (with zero point 0).",
                          .default_value = "int8"}},
          .run = MakeQuantizationExplicit};
}

}  // namespace optfarm::transforms
