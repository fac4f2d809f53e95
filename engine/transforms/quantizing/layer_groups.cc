#include "engine/transforms/quantizing/layer_groups.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"
#include "engine/transforms/nodes/loop_nodes.h"
#include "engine/transforms/nodes/static_shapes.h"
#include "engine/transforms/nodes/weight_ranges.h"
#include "engine/transforms/quantizing/layer_conditions.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using graph::PartialShape;

// Channels of what is multiplied number by number; more are left in float.
constexpr int64_t kMostChannels = 1 << 16;

bool IsFloat(const graph::Node& node) {
  return graph::GetTypeOr(node.def(), "T", tensorflow::DT_INVALID)
             .value_or(tensorflow::DT_INVALID) == tensorflow::DT_FLOAT;
}

int UnknownDims(const PartialShape& shape) {
  int unknown = 0;
  for (int i = 0; i < shape.rank(); ++i) unknown += shape.dim(i) < 0 ? 1 : 0;
  return unknown;
}

class Finder {
 public:
  Finder(const Graph& graph, const graph::ShapeMap& shapes,
         const KeptNodes& kept, TransformContext* context)
      : graph_(graph),
        shapes_(shapes),
        kept_(kept),
        context_(context),
        in_loop_(NodesInLoops(graph)) {}

  std::vector<LayerGroup> Find(const std::vector<NodeId>& order) {
    for (NodeId id : order) {
      std::optional<LayerGroup> group = GroupAt(id);
      if (!group.has_value()) continue;
      by_last_[group->last()] = groups_.size();
      by_head_[group->head] = groups_.size();
      groups_.push_back(*group);
    }
    return Wanted();
  }

 private:
  bool IsKept(NodeId id) const {
    const graph::Node& node = graph_.node(id);
    return kept_.ops.contains(node.op()) || kept_.names.contains(node.name());
  }

  std::optional<LayerGroup> GroupAt(NodeId id) {
    const graph::Node& node = graph_.node(id);
    if (!IsFloat(node) || in_groups_.contains(id)) return std::nullopt;
    if (IsProduct(node)) return ProductAt(id);
    if (in_loop_[id] || IsKept(id) || !node.control_inputs().empty()) {
      return std::nullopt;
    }
    if (IsSum(node)) {
      if (auto sum = SumAt(id)) return sum;
    }
    if (IsSum(node) || graph::HasRole(node.op(), graph::OpRole::kMultiply))
      return ChannelsAt(id);
    if (node.inputs().empty()) return std::nullopt;
    if (MeanOverPicture(shapes_, id, node)) {
      if (!ComesFromGroup(node.inputs()[0])) return std::nullopt;
      return LayerGroup{.kind = GroupKind::kMean, .head = id};
    }
    if (IsRangePreserving(node) && CanPreserveRange(id)) {
      return LayerGroup{.kind = GroupKind::kRangePreserving, .head = id};
    }
    if (IsDataMovement(node) && CanMove(node)) {
      return LayerGroup{.kind = GroupKind::kDataMovement, .head = id};
    }
    return std::nullopt;
  }

  std::optional<LayerGroup> ProductAt(NodeId id) {
    const graph::Node& node = graph_.node(id);
    const std::string reason = WhyFloat(id);
    if (!reason.empty()) {
      context_->Skip(node.name(), reason);
      return std::nullopt;
    }
    LayerGroup group{.kind = GroupKind::kProduct,
                     .head = id,
                     .weights = ConstantOf(graph_, node.inputs()[1]),
                     .is_in_loop = in_loop_[id]};
    const auto weights = FloatView::Of(graph_.node(group.weights));
    AddBias(OutputChannels(node, weights->shape()).value_or(-1),
            graph::IsFloatMatMul(node.op()) ? 2 : 4, &group);
    return WithEnd(std::move(group));
  }

  // With the activation and the trained range behind it; nullopt when a part is
  // to stay in float.
  std::optional<LayerGroup> WithEnd(LayerGroup group) {
    AddActivation(/*has_relu6=*/true, &group);
    const NodeId reader = OnlyReader(group.last());
    const bool is_relu6 =
        group.activation != graph::kNoNode &&
        graph::ActivationOf(graph_.node(group.activation).op()) ==
            graph::Activation::kRelu6;
    if (reader != graph::kNoNode &&
        IsTrainedRange(
            graph_, graph_.node(reader),
            is_relu6 ? 6.0f : std::numeric_limits<float>::infinity())) {
      group.trained_range = reader;
    }
    for (NodeId part :
         {group.head, group.bias_add, group.activation, group.trained_range}) {
      if (part != graph::kNoNode && IsKept(part)) {
        context_->Skip(graph_.node(group.head).name(),
                       "it is to stay in float");
        return std::nullopt;
      }
    }
    in_groups_.insert(group.last());
    if (group.bias_add != graph::kNoNode) in_groups_.insert(group.bias_add);
    return group;
  }

  std::string WhyFloat(NodeId id) const {
    const graph::Node& node = graph_.node(id);
    if (in_loop_[id] && !graph::IsFloatMatMul(node.op())) {
      return "it is a convolution inside a loop, where only matrix products "
             "have been found to keep their accuracy";
    }
    if (node.inputs().size() != 2) return "it has not two inputs";
    const NodeId constant = ConstantOf(graph_, node.inputs()[1]);
    if (constant == graph::kNoNode) return "its weights are not constant";
    const graph::Node& weights = graph_.node(constant);
    const auto view = FloatView::Of(weights);
    if (!view.ok()) return std::string(view.status().message());
    if (!OutputChannels(node, view->shape()).ok() || view->values().empty()) {
      return absl::StrCat("its weights have the shape ",
                          view->shape().ToString());
    }
    if (!SumsFit(node, *view, *OutputChannels(node, view->shape()))) {
      return "its sums of products may leave 32 bits";
    }
    if (FindWeightRange(view->values()).has_bad_value) {
      return absl::StrCat("its weights '", weights.name(),
                          "' hold NaN or infinite values");
    }
    if (graph::IsFloatMatMul(node.op())) {
      return graph::GetBoolOr(node.def(), "transpose_a", false).value_or(true)
                 ? "transpose_a has no 8-bit kernel"
                 : "";
    }
    if (shapes_.Of(node.inputs()[0]).elements() == 0) {
      return "its input 0 is empty and has no range";
    }
    return WhyFloatByWindow(node);
  }

  // The only reader of the node's only output, when nobody else needs it.
  NodeId OnlyReader(NodeId id) const {
    const graph::Node& node = graph_.node(id);
    if (node.uses().size() != 1 || node.uses()[0].is_control() ||
        node.uses()[0].port != 0 || context_->IsInputOrOutput(node.name())) {
      return graph::kNoNode;
    }
    const NodeId reader = node.uses()[0].consumer;
    return graph_.node(reader).control_inputs().empty() ? reader
                                                        : graph::kNoNode;
  }

  void AddBias(int64_t channels, int rank, LayerGroup* group) const {
    const NodeId reader = OnlyReader(group->last());
    if (reader == graph::kNoNode) return;
    const graph::Node& add = graph_.node(reader);
    if (!graph::IsSumOrBias(add.op()) || add.inputs().size() != 2 ||
        !graph::IsNhwc(add.def())) {
      return;
    }
    const int other = add.inputs()[0].node == group->head ? 1 : 0;
    if (!IsSum(add) && other == 0) return;
    const NodeId constant = ConstantOf(graph_, add.inputs()[other]);
    if (constant == graph::kNoNode) return;
    const auto bias = FloatView::Of(graph_.node(constant));
    if (!bias.ok() || bias->shape().rank() < 1 ||
        bias->shape().num_elements() != channels ||
        !ChannelNumbers(graph_.node(constant), channels, rank)) {
      return;
    }
    group->bias_add = reader;
    group->bias = constant;
  }

  void AddActivation(bool has_relu6, LayerGroup* group) const {
    const NodeId reader = OnlyReader(group->last());
    if (reader == graph::kNoNode) return;
    const graph::Activation activation =
        graph::ActivationOf(graph_.node(reader).op());
    if (activation == graph::Activation::kRelu ||
        (has_relu6 && activation == graph::Activation::kRelu6)) {
      group->activation = reader;
    }
  }

  // A sum of two tensors of one shape.
  std::optional<LayerGroup> SumAt(NodeId id) {
    const graph::Node& node = graph_.node(id);
    if (node.inputs().size() != 2) return std::nullopt;
    for (const Endpoint& input : node.inputs()) {
      if (!ComesFromGroup(input)) return std::nullopt;
    }
    const PartialShape& a = shapes_.Of(node.inputs()[0]);
    const PartialShape& b = shapes_.Of(node.inputs()[1]);
    if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) {
      return std::nullopt;
    }
    for (int i = 0; i < a.rank(); ++i) {
      // A dimension that is not known is taken to be alike in both: the kernel
      // broadcasts leading ones.
      if (a.dim(i) != b.dim(i) && a.dim(i) >= 0 && b.dim(i) >= 0) {
        return std::nullopt;
      }
    }
    LayerGroup group{.kind = GroupKind::kSum, .head = id};
    AddActivation(/*has_relu6=*/false, &group);
    if (group.activation != graph::kNoNode) {
      if (IsKept(group.activation)) return std::nullopt;
      in_groups_.insert(group.activation);
    }
    return group;
  }

  // A Mul or Add of a constant with a number for each channel, or one for all;
  // with the constant added behind a Mul.
  std::optional<LayerGroup> ChannelsAt(NodeId id) {
    const graph::Node& node = graph_.node(id);
    if (node.inputs().size() != 2) return std::nullopt;
    const int other = ComesFromGroup(node.inputs()[0]) ? 1 : 0;
    const Endpoint input = node.inputs()[1 - other];
    const PartialShape& shape = shapes_.Of(input);
    if (!ComesFromGroup(input) || !shape.has_rank() || shape.rank() < 2 ||
        (shape.rank() != 4 && UnknownDims(shape) > 1)) {
      return std::nullopt;
    }
    const int64_t channels = shape.dim(shape.rank() - 1);
    const NodeId constant = ConstantOf(graph_, node.inputs()[other]);
    if (channels < 1 || channels > kMostChannels ||
        constant == graph::kNoNode) {
      return std::nullopt;
    }
    const auto numbers =
        ChannelNumbers(graph_.node(constant), channels, shape.rank());
    if (!numbers.has_value()) return std::nullopt;
    LayerGroup group{.kind = GroupKind::kChannels, .head = id};
    if (IsSum(node)) {
      group.bias = constant;
    } else {
      group.weights = constant;
      AddBias(channels, shape.rank(), &group);
    }
    std::optional<LayerGroup> whole = WithEnd(std::move(group));
    // One positive factor changes what quantized values stand for, not the
    // quantized values.
    if (whole.has_value() && whole->last() == id && !IsSum(node) &&
        (*numbers)[0] > 0 &&
        FloatView::Of(graph_.node(constant))->values().size() == 1) {
      whole->kind = GroupKind::kScaled;
    }
    return whole;
  }

  bool CanMove(const graph::Node& node) const {
    const Filling filling = FillingOf(graph_, node);
    return ComesFromGroup(node.inputs()[0]) &&
           (!filling.is_needed || filling.is_zero);
  }

  bool ComesFromGroup(Endpoint input) const {
    return input.port == 0 && by_last_.contains(input.node);
  }

  bool CanPreserveRange(NodeId id) const {
    const graph::Node& node = graph_.node(id);
    for (int index : MovedInputs(node)) {
      if (index >= static_cast<int>(node.inputs().size()) ||
          !ComesFromGroup(node.inputs()[index])) {
        return false;
      }
    }
    const graph::OpRow& row = graph::RowOf(node.op());
    const bool is_max = row.role == graph::OpRole::kMaxPool;
    if (is_max || row.role == graph::OpRole::kAveragePool) {
      if (!WhyFloatByWindow(node).empty()) return false;
      // A mean over all of the space has a much smaller range than what it is
      // taken of: quantized values of that would not serve it (34).
      const PartialShape& out = shapes_.Of({id, 0});
      return is_max || (out.has_rank() && out.rank() == 4 &&
                        (out.dim(1) != 1 || out.dim(2) != 1));
    }
    if (row.flow == graph::ValueFlow::kReshaping &&
        row.role != graph::OpRole::kReshape) {
      // They become a Reshape to a constant shape.
      const PartialShape& out = shapes_.Of({id, 0});
      return out.has_rank() && UnknownDims(out) <= 1;
    }
    return true;
  }

  // Without the groups, other than products, whose result no product takes.
  std::vector<LayerGroup> Wanted() const {
    std::vector<bool> wanted(groups_.size());
    for (size_t i = groups_.size(); i-- > 0;) {
      wanted[i] = groups_[i].kind == GroupKind::kProduct ||
                  absl::c_any_of(graph_.node(groups_[i].last()).uses(),
                                 [&](const graph::Use& use) {
                                   return IsWantedBy(use, wanted);
                                 });
    }
    std::vector<LayerGroup> kept;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (wanted[i]) kept.push_back(groups_[i]);
    }
    return kept;
  }

  bool IsWantedBy(const graph::Use& use,
                  const std::vector<bool>& wanted) const {
    const auto found = by_head_.find(use.consumer);
    return found != by_head_.end() && wanted[found->second];
  }

  const Graph& graph_;
  const graph::ShapeMap& shapes_;
  const KeptNodes& kept_;
  TransformContext* context_;
  std::vector<bool> in_loop_;
  std::vector<LayerGroup> groups_;
  // Groups by the node whose value they compute, and by their first node.
  absl::flat_hash_map<NodeId, size_t> by_last_, by_head_;
  // Nodes that a group has taken in.
  absl::flat_hash_set<NodeId> in_groups_;
};

}  // namespace

absl::StatusOr<std::vector<LayerGroup>> FindLayerGroups(
    const Graph& graph, const KeptNodes& kept, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           InferShapesWithInputs(graph, *context));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(graph));
  return Finder(graph, shapes, kept, context).Find(order);
}

}  // namespace optfarm::transforms
