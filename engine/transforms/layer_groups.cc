#include "engine/transforms/layer_groups.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/transforms/constant_nodes.h"
#include "engine/transforms/convolution_weights.h"
#include "engine/transforms/loop_nodes.h"
#include "engine/transforms/pattern.h"
#include "engine/transforms/static_shapes.h"
#include "engine/transforms/weight_ranges.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using graph::PartialShape;

bool IsProduct(const graph::Node& node) {
  return node.op() == "Conv2D" || node.op() == "MatMul" ||
         node.op() == "DepthwiseConv2dNative";
}

bool IsSum(const graph::Node& node) {
  return node.op() == "Add" || node.op() == "AddV2";
}

bool IsPassing(const graph::Node& node) {
  constexpr std::array<absl::string_view, 7> kOps = {
      "MaxPool",    "AvgPool",  "Reshape", "Squeeze",
      "ExpandDims", "ConcatV2", "Concat"};
  return absl::c_linear_search(kOps, node.op());
}

bool IsFloat(const graph::Node& node) {
  return graph::GetTypeOr(node.def(), "T", tensorflow::DT_INVALID)
             .value_or(tensorflow::DT_INVALID) == tensorflow::DT_FLOAT;
}

// Whether a list attribute is 1, y, x, 1, or missing.
bool SlidesOverSpace(const graph::Node& node, absl::string_view attribute) {
  const auto values = graph::GetIntsOr(node.def(), attribute, {1, 1, 1, 1});
  return values.ok() && values->size() == 4 && (*values)[0] == 1 &&
         (*values)[3] == 1;
}

std::string WhyFloatByWindow(const graph::Node& node) {
  if (DataFormat(node) != "NHWC") {
    return absl::StrCat("data_format ", DataFormat(node),
                        " has no 8-bit kernel");
  }
  const std::string padding =
      graph::GetStringOr(node.def(), "padding", "").value_or("");
  if (padding != "SAME" && padding != "VALID") {
    return absl::StrCat("padding '", padding, "' has no 8-bit kernel");
  }
  for (const char* attribute : {"strides", "dilations", "ksize"}) {
    if (!SlidesOverSpace(node, attribute)) {
      return absl::StrCat("its ", attribute, " cover batch or channels");
    }
  }
  return "";
}

// Whether no sum of one channel's products leaves 30 bits, whatever codes are
// multiplied with the weights (25).
bool SumsFit(const graph::Node& product, const FloatView& weights,
             int64_t channels) {
  const auto count = static_cast<size_t>(channels);
  const absl::Span<const float> values = weights.values();
  const size_t row = values.size() / count;
  constexpr double kMost = (1 << 30) / 255.0 / 127.0;
  if (static_cast<double>(row) < kMost) return true;
  const bool channels_first =
      graph::GetBoolOr(product.def(), "transpose_b", false).value_or(false);
  std::vector<double> sums(count, 0.0), largest(count, 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = channels_first ? i / row : i % count;
    sums[c] += std::abs(values[i]);
    largest[c] = std::max(largest[c], double{std::abs(values[i])});
  }
  for (size_t c = 0; c < count; ++c) {
    // Half a step more for each weight, which rounding may add.
    const double steps =
        largest[c] > 0 ? sums[c] / largest[c] + 0.5 * row / 127.0 : 0.0;
    if (steps > kMost) return false;
  }
  return true;
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
    if (IsSum(node)) return SumAt(id);
    if (IsPassing(node) && CanPass(id)) {
      return LayerGroup{.kind = GroupKind::kPassing, .head = id};
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
    LayerGroup group{.kind = GroupKind::kProduct, .head = id};
    AddBias(&group);
    AddActivation(/*has_relu6=*/true, &group);
    const NodeId reader = OnlyReader(group.last());
    const bool has_six = group.activation != graph::kNoNode &&
                         graph_.node(group.activation).op() == "Relu6";
    if (reader != graph::kNoNode &&
        IsTrainedRange(
            graph_, graph_.node(reader),
            has_six ? 6.0f : std::numeric_limits<float>::infinity())) {
      group.trained_range = reader;
    }
    for (NodeId part :
         {group.head, group.bias_add, group.activation, group.trained_range}) {
      if (part != graph::kNoNode && IsKept(part)) {
        context_->Skip(node.name(), "it is to stay in float");
        return std::nullopt;
      }
    }
    in_groups_.insert(group.last());
    if (group.bias_add != graph::kNoNode) in_groups_.insert(group.bias_add);
    return group;
  }

  std::string WhyFloat(NodeId id) const {
    const graph::Node& node = graph_.node(id);
    if (in_loop_[id]) {
      return "it runs inside a loop, where ranges cannot be computed apart";
    }
    if (node.inputs().size() != 2) return "it has not two inputs";
    const graph::Node& weights = graph_.node(node.inputs()[1].node);
    if (!IsConst(weights)) return "its weights are not constant";
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
    if (node.op() == "MatMul") {
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

  void AddBias(LayerGroup* group) const {
    const NodeId reader = OnlyReader(group->head);
    if (reader == graph::kNoNode) return;
    const graph::Node& add = graph_.node(reader);
    if ((add.op() != "BiasAdd" && !IsSum(add)) || add.inputs().size() != 2 ||
        DataFormat(add) != "NHWC") {
      return;
    }
    const int other = add.inputs()[0].node == group->head ? 1 : 0;
    if (add.op() == "BiasAdd" && other == 0) return;
    const graph::Node& constant = graph_.node(add.inputs()[other].node);
    if (!IsConst(constant)) return;
    const auto bias = FloatView::Of(constant);
    const auto weights =
        FloatView::Of(graph_.node(graph_.node(group->head).inputs()[1].node));
    if (!bias.ok() || !weights.ok()) return;
    const int64_t channels =
        OutputChannels(graph_.node(group->head), weights->shape()).value_or(-1);
    const runtime::Shape& shape = bias->shape();
    const int rank = graph_.node(group->head).op() == "MatMul" ? 2 : 4;
    if (shape.rank() < 1 || shape.rank() > rank ||
        shape.num_elements() != channels ||
        shape.dim(shape.rank() - 1) != channels ||
        !absl::c_all_of(bias->values(),
                        [](float v) { return std::isfinite(v); })) {
      return;
    }
    group->bias_add = reader;
    group->bias = add.inputs()[other].node;
  }

  void AddActivation(bool has_relu6, LayerGroup* group) const {
    const NodeId reader = OnlyReader(group->last());
    if (reader == graph::kNoNode) return;
    const std::string& op = graph_.node(reader).op();
    if (op == "Relu" || (has_relu6 && op == "Relu6")) {
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

  bool ComesFromGroup(Endpoint input) const {
    return input.port == 0 && by_last_.contains(input.node);
  }

  bool CanPass(NodeId id) const {
    const graph::Node& node = graph_.node(id);
    for (int index : MovedInputs(node)) {
      if (index >= static_cast<int>(node.inputs().size()) ||
          !ComesFromGroup(node.inputs()[index])) {
        return false;
      }
    }
    if (node.op() == "MaxPool" || node.op() == "AvgPool") {
      if (!WhyFloatByWindow(node).empty()) return false;
      // A mean over all of the space has a much smaller range than what it is
      // taken of: its own codes serve it better.
      const PartialShape& out = shapes_.Of({id, 0});
      return node.op() == "MaxPool" || (out.has_rank() && out.rank() == 4 &&
                                        (out.dim(1) != 1 || out.dim(2) != 1));
    }
    if (node.op() == "Squeeze" || node.op() == "ExpandDims") {
      // They become a Reshape to a constant shape.
      const PartialShape& out = shapes_.Of({id, 0});
      int unknown = 0;
      for (int i = 0; out.has_rank() && i < out.rank(); ++i) {
        unknown += out.dim(i) < 0 ? 1 : 0;
      }
      return out.has_rank() && unknown <= 1;
    }
    return true;
  }

  // Without the sums and passing ops whose result no product takes.
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

bool IsTrainedRange(const Graph& graph, const graph::Node& node, float most) {
  if (node.op() != "FakeQuantWithMinMaxVars" || node.inputs().size() != 3) {
    return false;
  }
  std::vector<float> ends;
  for (int i : {1, 2}) {
    const graph::Node& end = graph.node(node.inputs()[i].node);
    if (!IsConst(end)) return false;
    const auto value = FloatView::Of(end);
    if (!value.ok() || value->values().size() != 1) return false;
    ends.push_back(value->values()[0]);
  }
  const auto bits = graph::GetIntOr(node.def(), "num_bits", 8);
  const auto is_narrow = graph::GetBoolOr(node.def(), "narrow_range", false);
  return bits.ok() && *bits == 8 && is_narrow.ok() && !*is_narrow &&
         ends[0] <= 0 && ends[1] >= 0 && ends[0] < ends[1] && ends[1] <= most &&
         std::isfinite(ends[1] - ends[0]);
}

std::vector<int> MovedInputs(const graph::Node& node) {
  std::vector<int> moved;
  const int count = static_cast<int>(node.inputs().size());
  if (node.op() == "ConcatV2") {
    for (int i = 0; i + 1 < count; ++i) moved.push_back(i);
  } else if (node.op() == "Concat") {
    for (int i = 1; i < count; ++i) moved.push_back(i);
  } else {
    moved.push_back(0);
  }
  return moved;
}

absl::StatusOr<std::vector<LayerGroup>> FindLayerGroups(
    const Graph& graph, const KeptNodes& kept, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           InferShapesWithInputs(graph, *context));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(graph));
  return Finder(graph, shapes, kept, context).Find(order);
}

}  // namespace optfarm::transforms
