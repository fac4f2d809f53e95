// Finds readers, constants and scales.

#include "engine/formats/tflite/raising/graph_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::Endpoint;
using graph::Node;
using graph::NodeId;

// Constants are looked for behind at most this many nodes.
constexpr int kLongestChain = 8;

bool IsOneOf(absl::string_view op,
             std::initializer_list<absl::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool IsWideningCast(const Node& node) {
  if (!graph::IsCast(node.op())) return false;
  const auto from = graph::GetType(node.def(), "SrcT");
  const auto to = graph::GetType(node.def(), "DstT");
  return from.ok() && to.ok() && *to == tensorflow::DT_FLOAT &&
         *from == tensorflow::DT_HALF;
}

}  // namespace

bool IsRearrangement(absl::string_view op) {
  return IsOneOf(op, {"Transpose", "Reshape", "ExpandDims", "Squeeze",
                      "UnsqueezeAxes", "SqueezeAxes", "ReshapeCopy"});
}

bool PassesOn(absl::string_view op) {
  return IsOneOf(
      op, {"Identity", "StopGradient", "CheckNumerics", "PreventGradient",
           "Snapshot", "EnsureShape", "PlaceholderWithDefault"});
}

bool KeepsScales(absl::string_view op) {
  return IsOneOf(op, {"Reshape",
                      "Transpose",
                      "Squeeze",
                      "ExpandDims",
                      "Slice",
                      "StridedSlice",
                      "MaxPool",
                      "GatherV2",
                      "Gather",
                      "Tile",
                      "SpaceToDepth",
                      "DepthToSpace",
                      "ReverseV2",
                      "Split",
                      "SplitV",
                      "Unpack",
                      "ConcatV2",
                      "Concat",
                      "Pack",
                      "Pad",
                      "PadV2",
                      "MirrorPad",
                      "ResizeNearestNeighbor",
                      "SpaceToBatchND",
                      "BatchToSpaceND",
                      "BroadcastTo",
                      "Maximum",
                      "Minimum",
                      "Max",
                      "Min",
                      "Select",
                      "SelectV2"});
}

absl::StatusOr<GraphView> GraphView::Of(const graph::Graph& graph,
                                        std::vector<ModelEnd> inputs,
                                        std::vector<Endpoint> outputs) {
  GraphView view(graph);
  graph::ShapeOptions options;
  std::vector<NodeId> fed;
  for (const ModelEnd& input : inputs) {
    options.feeds[input.tensor] = input.shape;
    view.inputs_.insert(input.tensor);
    // A node whose other outputs are not fed still runs.
    const auto uses = graph.node(input.tensor.node).uses();
    if (std::all_of(uses.begin(), uses.end(), [&](const graph::Use& use) {
          return use.is_control() || use.port == input.tensor.port;
        })) {
      fed.push_back(input.tensor.node);
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(view.shapes_, graph::InferShapes(graph, options));
  std::vector<NodeId> roots;
  for (const Endpoint& output : outputs) roots.push_back(output.node);
  const std::vector<bool> needed = graph::ReachableFrom(graph, roots, fed);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::ExecutionOrder(graph));
  for (NodeId id : order) {
    if (needed[id] && std::find(fed.begin(), fed.end(), id) == fed.end()) {
      view.order_.push_back(id);
    }
  }
  for (const Endpoint& output : outputs) {
    view.outputs_.insert(view.Source(output));
  }
  view.FindReaders();
  view.FindQuantizations();
  return view;
}

Endpoint GraphView::Source(Endpoint tensor) const {
  // An Identity that is fed is an input of the model.
  while (!inputs_.contains(tensor)) {
    const Node& node = graph_->node(tensor.node);
    if (!PassesOn(node.op()) || node.inputs().empty()) break;
    tensor = node.inputs()[0];
  }
  return tensor;
}

const std::vector<Reader>& GraphView::ReadersOf(Endpoint source) const {
  static const auto* const nobody = new std::vector<Reader>;
  const auto it = readers_.find(source);
  return it == readers_.end() ? *nobody : it->second;
}

void GraphView::FindReaders() {
  for (NodeId id : order_) {
    const Node& node = graph_->node(id);
    if (PassesOn(node.op())) continue;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      readers_[InputOf(id, static_cast<int>(i))].push_back(
          {id, static_cast<int>(i)});
    }
  }
}

tensorflow::DataType GraphView::TypeOf(Endpoint tensor) const {
  const Node& node = graph_->node(tensor.node);
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) return tensorflow::DT_INVALID;
  const auto types = graph::OutputTypes(*op_def, node.def());
  if (!types.ok() || tensor.port >= static_cast<int>(types->size())) {
    return tensorflow::DT_INVALID;
  }
  return graph::BaseType((*types)[tensor.port]);
}

std::optional<std::vector<int64_t>> GraphView::KnownNumbers(
    Endpoint tensor) const {
  tensor = Source(tensor);
  if (inputs_.contains(tensor)) return std::nullopt;
  if (const graph::PartialValue* value = shapes_.ValueOf(tensor)) {
    if (!value->is_known()) return std::nullopt;
    std::vector<int64_t> numbers;
    for (const auto& element : value->elements) numbers.push_back(*element);
    return numbers;
  }
  if (!IsConstant(tensor)) return std::nullopt;
  const auto constant = ConstantAt(tensor);
  if (!constant.ok() || constant->is_quantized()) return std::nullopt;
  auto numbers = WholeNumbers(*constant);
  if (!numbers.ok()) return std::nullopt;
  return *std::move(numbers);
}

bool GraphView::IsConstant(Endpoint tensor) const {
  for (int step = 0; step < kLongestChain; ++step) {
    tensor = Source(tensor);
    if (inputs_.contains(tensor)) return false;
    const Node& node = graph_->node(tensor.node);
    if (graph::IsConst(node.op())) return true;
    if (!IsRearrangement(node.op()) && !IsWideningCast(node) &&
        !graph::IsDequantizeLinear(node.op())) {
      return false;
    }
    for (size_t i = 1; i < node.inputs().size(); ++i) {
      const Node& other =
          graph_->node(InputOf(tensor.node, static_cast<int>(i)).node);
      if (!graph::IsConst(other.op()) &&
          !KnownNumbers(node.inputs()[i]).has_value()) {
        return false;
      }
    }
    tensor = node.inputs()[0];
  }
  return false;
}

absl::StatusOr<Constant> GraphView::Rearranged(const Node& node,
                                               Constant input) const {
  const Endpoint result = {graph_->Find(node.name()), 0};
  if (graph::IsTranspose(node.op())) {
    const auto order = KnownNumbers(node.inputs()[1]);
    if (!order.has_value()) {
      return absl::FailedPreconditionError("its permutation is not constant");
    }
    return Transposed(input, *order);
  }
  const graph::PartialShape& shape = shapes_.Of(result);
  if (!shape.is_static()) {
    return absl::FailedPreconditionError("its shape is not known");
  }
  OPTFARM_RETURN_IF_ERROR(Reshape(
      std::vector<int64_t>(shape.dims().begin(), shape.dims().end()), &input));
  return input;
}

absl::StatusOr<Constant> GraphView::ConstantAt(Endpoint tensor) const {
  tensor = Source(tensor);
  if (!IsConstant(tensor)) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", graph_->NameOf(tensor), "' is not constant"));
  }
  const Node& node = graph_->node(tensor.node);
  if (graph::IsConst(node.op())) {
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* value,
                             graph::GetTensor(node.def(), "value"));
    tflite::TensorType type{};
    if (!FindTensorType(value->dtype(), &type)) {
      return absl::UnimplementedError(
          absl::StrCat("TensorFlow Lite has no constants of type ",
                       graph::DataTypeName(value->dtype())));
    }
    return DecodeConstant(*value);
  }
  OPTFARM_ASSIGN_OR_RETURN(Constant input, ConstantAt(node.inputs()[0]));
  if (graph::IsDequantizeLinear(node.op())) {
    OPTFARM_ASSIGN_OR_RETURN(Quantization scales, ScalesOf(tensor.node));
    OPTFARM_RETURN_IF_ERROR(SetScales(std::move(scales.scale),
                                      std::move(scales.zero_point), scales.axis,
                                      &input));
    return input;
  }
  // Half precision stays as it is stored.
  if (graph::IsCast(node.op())) return input;
  return Rearranged(node, std::move(input));
}

absl::StatusOr<Quantization> GraphView::ScalesOf(NodeId id) const {
  const Node& node = graph_->node(id);
  if (node.inputs().size() < 2) {
    return absl::InvalidArgumentError("it has no scale");
  }
  Quantization result;
  OPTFARM_ASSIGN_OR_RETURN(const Constant scale, ConstantAt(node.inputs()[1]));
  OPTFARM_ASSIGN_OR_RETURN(result.scale, RealValues(scale));
  if (node.inputs().size() > 2) {
    OPTFARM_ASSIGN_OR_RETURN(const Constant zero_point,
                             ConstantAt(node.inputs()[2]));
    OPTFARM_ASSIGN_OR_RETURN(result.zero_point, WholeNumbers(zero_point));
  }
  if (result.zero_point.size() < 2) {
    result.zero_point.resize(result.scale.size(), result.zero_point.empty()
                                                      ? 0
                                                      : result.zero_point[0]);
  }
  if (result.scale.empty() || result.scale.size() != result.zero_point.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", result.scale.size(), " scales and ",
                     result.zero_point.size(), " zero points"));
  }
  if (result.scale.size() > 1) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                             graph::GetIntOr(node.def(), "axis", -1));
    const graph::PartialShape& shape = ShapeOf(node.inputs()[0]);
    const int64_t rank = shape.has_rank() ? shape.rank() : 0;
    result.axis = static_cast<int>(axis < 0 ? axis + rank : axis);
  }
  return result;
}

const Quantization* GraphView::QuantizationOf(Endpoint tensor) const {
  const auto it = quantizations_.find(Source(tensor));
  return it == quantizations_.end() ? nullptr : &it->second;
}

void GraphView::FindQuantizations() {
  const auto passes_to = [&](NodeId id, Endpoint from, Endpoint to) {
    const auto it = quantizations_.find(from);
    if (it == quantizations_.end() || it->second.scale.size() > 1 ||
        TypeOf(to) != TypeOf(from) || !KeepsScales(graph_->node(id).op())) {
      return;
    }
    quantizations_.emplace(to, Quantization(it->second));
  };
  const auto moved_input = [&](const Node& node) {
    const bool is_second =
        IsOneOf(node.op(), {"Split", "Concat", "Select", "SelectV2"});
    return is_second && node.inputs().size() > 1 ? 1 : 0;
  };
  for (NodeId id : order_) {
    const Node& node = graph_->node(id);
    if (node.inputs().empty()) continue;
    if (graph::IsQuantizeLinear(node.op()) ||
        graph::IsDequantizeLinear(node.op())) {
      const auto scales = ScalesOf(id);
      const Endpoint stored =
          graph::IsQuantizeLinear(node.op()) ? Endpoint{id, 0} : InputOf(id, 0);
      if (scales.ok()) quantizations_.emplace(stored, *scales);
      continue;
    }
    const Endpoint from = InputOf(id, moved_input(node));
    for (const graph::Use& use : node.uses()) {
      if (!use.is_control()) passes_to(id, from, {id, use.port});
    }
  }
  for (size_t i = order_.size(); i-- > 0;) {
    const Node& node = graph_->node(order_[i]);
    for (size_t input = 0; input < node.inputs().size(); ++input) {
      passes_to(order_[i], {order_[i], 0},
                InputOf(order_[i], static_cast<int>(input)));
    }
  }
}

}  // namespace optfarm::formats::tflite_raising
