// What all rows share: fusing what follows, choosing scales, emitting.

#include "engine/formats/tflite/raising/node_raiser.h"

#include <tflite/schema_generated.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::Endpoint;
using graph::Node;
using graph::NodeId;
using tflite::BuiltinOperator;
using tflite::TensorType;

Activation ActivationOf(const Node& node) {
  switch (graph::ActivationOf(node.op())) {
    case graph::Activation::kRelu:
      return Activation::kRelu;
    case graph::Activation::kRelu6:
      return Activation::kRelu6;
    case graph::Activation::kNone:
      break;
  }
  return Activation::kNone;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> NodeRaiser::Numbers(int i) const {
  std::optional<std::vector<int64_t>> numbers =
      view().KnownNumbers(node().inputs()[i]);
  if (!numbers.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("its input ", i, " ('", view().graph().NameOf(input(i)),
                     "') must be constant"));
  }
  return *std::move(numbers);
}

absl::StatusOr<int64_t> NodeRaiser::Number(int i) const {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, Numbers(i));
  if (numbers.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its input ", i, " has ", numbers.size(), " elements instead of 1"));
  }
  return numbers[0];
}

absl::StatusOr<int> NodeRaiser::AxisOf(int64_t axis, int i) const {
  const graph::PartialShape& shape = ShapeOfInput(i);
  if (!shape.has_rank()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the rank of its input ", i, " is not known"));
  }
  if (axis < 0) axis += shape.rank();
  if (axis < 0 || axis >= shape.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("its axis is not within shape ", shape.ToString()));
  }
  return static_cast<int>(axis);
}

TensorId NodeRaiser::Int32s(const std::vector<int64_t>& values) {
  return draft().AddInt32s(absl::StrCat(node().name(), "/numbers"), values);
}

TensorId NodeRaiser::Int32(int64_t value) {
  const TensorId id = Int32s({value});
  draft().tensors[id].shape = graph::PartialShape::Scalar();
  return id;
}

TensorId NodeRaiser::Float(float value) { return Floats({}, {value}); }

TensorId NodeRaiser::Floats(std::vector<int64_t> dims,
                            const std::vector<float>& values) {
  return draft().AddConstant(absl::StrCat(node().name(), "/constant"),
                             FloatConstant(std::move(dims), values));
}

TensorId NodeRaiser::Int32Input(int i) {
  const auto numbers = view().KnownNumbers(node().inputs()[i]);
  if (numbers.has_value()) {
    const TensorId id = Int32s(*numbers);
    draft().tensors[id].shape = ShapeOfInput(i);
    return id;
  }
  const TensorId id = Tensor(i);
  if (draft().tensor(id).type == TensorType::INT32) return id;
  DraftTensor cast;
  cast.name = absl::StrCat(draft().tensor(id).name, "/int32");
  cast.type = TensorType::INT32;
  cast.shape = draft().tensor(id).shape;
  const TensorId made = draft().AddTensor(std::move(cast));
  draft().AddOperator(BuiltinOperator::CAST, {id}, {made});
  return made;
}

NodeId NodeRaiser::OnlyReader(Endpoint tensor, int* input) const {
  if (view().IsOutput(tensor)) return graph::kNoNode;
  const std::vector<Reader>& readers = view().ReadersOf(tensor);
  if (readers.size() != 1) return graph::kNoNode;
  *input = readers[0].input;
  return readers[0].node;
}

void NodeRaiser::FindTail(const LayerRequest& request, Layer* layer) const {
  layer->end = output();
  int input = 0;
  NodeId next = OnlyReader(layer->end, &input);
  if (next == graph::kNoNode) return;
  if (request.takes_bias &&
      graph::IsSumOrBias(view().graph().node(next).op())) {
    const Endpoint other = view().InputOf(next, 1 - input);
    const graph::PartialShape& shape = view().ShapeOf(other);
    const graph::PartialShape& whole = ShapeOfOutput();
    // A vector with an element for each channel, or [1,...,1,channels].
    const bool is_vector = shape.is_static() && whole.has_rank() &&
                           shape.rank() >= 1 && whole.rank() >= shape.rank() &&
                           shape.dim(-1) == whole.dim(-1) &&
                           shape.elements() == shape.dim(-1);
    if (is_vector && view().IsConstant(other)) {
      layer->bias = other;
      layer->end = {next, 0};
      layer->fused.push_back(next);
      next = OnlyReader(layer->end, &input);
    }
  }
  if (next == graph::kNoNode || !request.takes_activation) return;
  layer->activation = ActivationOf(view().graph().node(next));
  if (layer->activation == Activation::kNone) return;
  layer->end = {next, 0};
  layer->fused.push_back(next);
}

bool NodeRaiser::ChooseScales(const LayerRequest& request, Layer* layer) {
  if (request.rule == ScaleRule::kFloatOnly || request.inputs.empty()) {
    return false;
  }
  for (const Endpoint& input : request.inputs) {
    const std::optional<TensorId> twin = tensors_.Twin(input);
    if (!twin.has_value()) return false;
    layer->inputs.push_back(*twin);
  }
  const DraftTensor& first = draft().tensor(layer->inputs[0]);
  layer->type = first.type;
  layer->scales = first.quantization;
  for (TensorId id : layer->inputs) {
    if (draft().tensor(id).type != first.type) return false;
  }
  const std::optional<Quantized> readers =
      tensors_.QuantizedReaders(layer->end);
  if (request.rule == ScaleRule::kDataMovement) {
    // Several inputs must have the scales of the output.
    if (readers.has_value() && readers->alike && layer->inputs.size() > 1 &&
        readers->type == first.type) {
      layer->scales = readers->scales;
      return true;
    }
    for (TensorId id : layer->inputs) {
      if (draft().tensor(id).quantization != first.quantization) return false;
    }
    return true;
  }
  if (!readers.has_value() || readers->type != first.type) return false;
  if (request.rule == ScaleRule::kSame) {
    for (TensorId id : layer->inputs) {
      if (draft().tensor(id).quantization != first.quantization) return false;
    }
    return true;
  }
  if (request.rule == ScaleRule::kFixed) {
    layer->scales = request.fixed;
    return true;
  }
  if (!readers->alike) return false;
  layer->scales = readers->scales;
  return true;
}

Layer NodeRaiser::Begin(const LayerRequest& request) {
  Layer layer;
  FindTail(request, &layer);
  layer.is_quantized = ChooseScales(request, &layer);
  if (layer.is_quantized) {
    if (request.rule == ScaleRule::kDataMovement) {
      for (TensorId& id : layer.inputs) {
        id = Requantized(id, layer.scales, layer.type);
      }
    }
    return layer;
  }
  layer.inputs.clear();
  for (const Endpoint& input : request.inputs) {
    layer.inputs.push_back(tensors_.Tensor(input));
  }
  return layer;
}

void NodeRaiser::Finish(const Layer& layer, BuiltinOperator op,
                        std::vector<TensorId> inputs, OperatorOptions options) {
  TensorId made = kNoTensor;
  if (layer.is_quantized) {
    made = tensors_.NewTensor(layer.end, layer.type, layer.scales);
    tensors_.SetTwin(layer.end, made);
    const std::optional<Quantized> readers =
        tensors_.QuantizedReaders(layer.end);
    if (readers.has_value() && readers->scales == layer.scales &&
        readers->stored.node != graph::kNoNode) {
      draft().tensors[made].name =
          graph::TensorNameInFile(view().graph(), readers->stored);
    }
  } else {
    made = tensors_.NewTensor(layer.end);
    tensors_.SetTensor(layer.end, made);
  }
  options.activation = layer.activation;
  draft().AddOperator(op, std::move(inputs), {made}, std::move(options));
  raised_.insert(layer.fused.begin(), layer.fused.end());
}

void NodeRaiser::Emit(BuiltinOperator op, std::vector<TensorId> inputs,
                      OperatorOptions options) {
  const TensorId made = tensors_.NewTensor(output());
  SetOutput(made);
  draft().AddOperator(op, std::move(inputs), {made}, std::move(options));
}

TensorId NodeRaiser::EmitBetween(BuiltinOperator op,
                                 std::vector<TensorId> inputs, TensorId like,
                                 graph::PartialShape shape,
                                 OperatorOptions options) {
  DraftTensor tensor;
  tensor.name = absl::StrCat(node().name(), "/step", draft().tensors.size());
  tensor.type = draft().tensor(like).type;
  tensor.quantization = draft().tensor(like).quantization;
  tensor.shape = std::move(shape);
  const TensorId made = draft().AddTensor(std::move(tensor));
  draft().AddOperator(op, std::move(inputs), {made}, std::move(options));
  return made;
}

TensorId NodeRaiser::Requantized(TensorId from, const Quantization& scales,
                                 TensorType type) {
  const DraftTensor& source = draft().tensor(from);
  if (source.type == type && source.quantization == scales) return from;
  const TensorId made = EmitBetween(BuiltinOperator::QUANTIZE, {from}, from,
                                    graph::PartialShape(source.shape));
  draft().tensors[made].type = type;
  draft().tensors[made].quantization = scales;
  return made;
}

}  // namespace optfarm::formats::tflite_raising
