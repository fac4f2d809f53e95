#include "engine/transforms/folding/scale_and_shift_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"

namespace optfarm::transforms {

using graph::Endpoint;
using graph::NodeId;
using runtime::Tensor;

namespace {

// Concatenations and the like one above the other; models have two at most.
constexpr int kMostNested = 8;

bool IsProduct(const graph::Node& node) {
  return graph::IsFloatProduct(node.op()) && node.inputs().size() == 2;
}

bool IsConcat(const graph::Node& node) {
  return graph::HasRole(node.op(), graph::OpRole::kConcat) &&
         node.inputs().size() >= 2;
}

bool IsBatchToSpace(const graph::Node& node) {
  return node.op() == "BatchToSpaceND" && node.inputs().size() == 3;
}

bool IsTranspose(const graph::Node& node) {
  return graph::IsTranspose(node.op()) && node.inputs().size() == 2;
}

// What is joined.
absl::Span<const Endpoint> Parts(const graph::Node& concat) {
  return graph::RowOf(concat.op()).has_axis_first
             ? concat.inputs().subspan(1)
             : concat.inputs().subspan(0, concat.inputs().size() - 1);
}

}  // namespace

absl::StatusOr<ScaleAndShiftPlan> ScaleAndShiftPlanner::Make(NodeId head) {
  plan_ = ScaleAndShiftPlan();
  channels_.clear();
  if (ProductBelow(head, &plan_.removed) == nullptr) {
    return absl::NotFoundError("nothing below it takes factors");
  }
  plan_.removed.clear();
  OPTFARM_RETURN_IF_ERROR(Descend(head, graph::kNoNode, 0, ChannelAffine(), 0));
  return std::move(plan_);
}

absl::Status ScaleAndShiftPlanner::CheckExclusive(NodeId node,
                                                  NodeId reader) const {
  if (reader == graph::kNoNode) return absl::OkStatus();
  const std::string shared = WhyShared(graph_, context_, node, reader);
  if (shared.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(shared);
}

absl::Status ScaleAndShiftPlanner::Descend(NodeId node, NodeId reader,
                                           int input, ChannelAffine outer,
                                           int depth) {
  NodeId above = reader;
  while (true) {
    OPTFARM_RETURN_IF_ERROR(CheckExclusive(node, above));
    OPTFARM_ASSIGN_OR_RETURN(const std::optional<AffineNode> affine,
                             ReadAffineNode(graph_, node));
    if (!affine.has_value()) break;
    const Endpoint data = DataOf(node, *affine);
    if (data.port != 0 || HasOtherOutputsRead(graph_.node(node))) {
      return absl::FailedPreconditionError(
          "an output besides the first is read");
    }
    plan_.removed.push_back(node);
    if (affine->affine.scales) ++plan_.scalings;
    OPTFARM_RETURN_IF_ERROR(outer.ComposeWith(affine->affine));
    above = node;
    node = data.node;
  }
  if (reader == graph::kNoNode) plan_.top = node;
  const graph::Node& below = graph_.node(node);
  if (IsProduct(below)) return AddProduct(node, reader, input, outer);
  if (depth >= kMostNested ||
      (!IsConcat(below) && !IsBatchToSpace(below) && !IsTranspose(below))) {
    return absl::NotFoundError(absl::StrCat(
        "'", below.name(), "' (", below.op(), ") does not take factors"));
  }
  if (reader != graph::kNoNode) {
    plan_.rewired.push_back({{reader, input}, node});
  }
  if (IsConcat(below)) return DescendConcat(node, outer, depth);
  if (IsTranspose(below)) {
    return DescendTranspose(node, std::move(outer), depth);
  }
  return DescendBatchToSpace(node, outer, depth);
}

Endpoint ScaleAndShiftPlanner::DataOf(NodeId node,
                                      const AffineNode& affine) const {
  return graph_.node(node).inputs()[static_cast<size_t>(affine.data_input)];
}

absl::Status ScaleAndShiftPlanner::AddProduct(NodeId product, NodeId reader,
                                              int input,
                                              const ChannelAffine& affine) {
  const graph::Node& node = graph_.node(product);
  const Endpoint source = node.inputs()[1];
  if (!IsConst(graph_.node(source.node)) || source.port != 0 ||
      node.inputs()[0].node == source.node) {
    return absl::FailedPreconditionError(
        absl::StrCat("the weights of '", node.name(), "' are not constant"));
  }
  OPTFARM_RETURN_IF_ERROR(CheckExclusive(source.node, product));
  const bool is_matmul = graph::IsFloatMatMul(node.op());
  const int channel_axis = !is_matmul && !graph::IsNhwc(node.def()) ? 2 : 0;
  if (affine.rank > (is_matmul ? 2 : 4) ||
      (affine.channel_axis >= 0 && affine.channel_axis != channel_axis)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the constants do not go along the channels of '", node.name(), "'"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels, Channels(product, 0));
  ScaledProduct leaf{.product = product,
                     .scale = {},
                     .shift = {},
                     .reader = reader,
                     .input = input};
  for (const auto& [from, to] : {std::pair(&affine.scale, &leaf.scale),
                                 std::pair(&affine.shift, &leaf.shift)}) {
    if (from->size() != 1 && static_cast<int64_t>(from->size()) != channels) {
      return absl::FailedPreconditionError(
          absl::StrCat("there are ", from->size(), " constants for the ",
                       channels, " channels of '", node.name(), "'"));
    }
    for (int64_t c = 0; c < channels; ++c) {
      to->push_back(static_cast<float>(
          (*from)[from->size() == 1 ? 0 : static_cast<size_t>(c)]));
      if (!std::isfinite(to->back())) {
        return absl::FailedPreconditionError(
            "a factor or offset is too large for float");
      }
    }
  }
  OPTFARM_RETURN_IF_ERROR(
      CheckScale(node, graph_.node(source.node), leaf.scale.size()));
  plan_.products.push_back(std::move(leaf));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ScaleAndShiftPlanner::Channels(NodeId node, int depth) {
  std::optional<AffineNode> affine;
  while (!IsProduct(graph_.node(node))) {
    OPTFARM_ASSIGN_OR_RETURN(affine, ReadAffineNode(graph_, node));
    if (affine.has_value()) {
      node = DataOf(node, *affine).node;
    } else if (IsBatchToSpace(graph_.node(node)) ||
               IsTranspose(graph_.node(node))) {
      node = graph_.node(node).inputs()[0].node;
    } else {
      break;
    }
  }
  const graph::Node& below = graph_.node(node);
  if (IsProduct(below)) {
    const graph::Node& weights = graph_.node(below.inputs()[1].node);
    if (!IsConst(weights)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the weights of '", below.name(), "' are not constant"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const FloatView view, FloatView::Of(weights));
    return OutputChannels(below, view.shape());
  }
  if (!IsConcat(below) || depth >= kMostNested) {
    return absl::NotFoundError(absl::StrCat(
        "'", below.name(), "' (", below.op(), ") does not take factors"));
  }
  if (const auto known = channels_.find(node); known != channels_.end()) {
    return known->second;
  }
  OPTFARM_ASSIGN_OR_RETURN(const bool along, IsAlongChannels(below));
  int64_t sum = 0;
  for (const Endpoint& part : Parts(below)) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t count,
                             Channels(part.node, depth + 1));
    sum = along ? sum + count : count;
    if (!along) break;
  }
  channels_[node] = sum;
  return sum;
}

const graph::Node* ScaleAndShiftPlanner::ProductBelow(
    NodeId node, std::vector<NodeId>* path) const {
  for (int steps = 0; steps < graph_.node_count(); ++steps) {
    const graph::Node& at = graph_.node(node);
    if (IsProduct(at)) return &at;
    if (path != nullptr) path->push_back(node);
    const absl::StatusOr<std::optional<AffineNode>> affine =
        ReadAffineNode(graph_, node);
    if (!affine.ok()) {
      // What keeps it from being folded is said later.
      node = at.inputs()[0].node;
    } else if (affine->has_value()) {
      node = DataOf(node, **affine).node;
    } else if (IsConcat(at)) {
      node = Parts(at)[0].node;
    } else if (IsBatchToSpace(at) || IsTranspose(at)) {
      node = at.inputs()[0].node;
    } else {
      return nullptr;
    }
  }
  return nullptr;
}

absl::StatusOr<bool> ScaleAndShiftPlanner::IsAlongChannels(
    const graph::Node& concat) const {
  const Endpoint axis_input =
      concat.inputs()[graph::RowOf(concat.op()).has_axis_first
                          ? 0
                          : concat.inputs().size() - 1];
  std::vector<NodeId> path;
  const graph::Node* product = ProductBelow(Parts(concat)[0].node, &path);
  if (!IsConst(graph_.node(axis_input.node)) || product == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the axis of '", concat.name(), "' is not constant"));
  }
  if (HasTranspose(path)) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", concat.name(), "' joins what was transposed before"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor axis,
                           ConstValue(graph_.node(axis_input.node)));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, axis.AsInt64s());
  const bool is_matmul = graph::IsFloatMatMul(product->op());
  const int64_t rank = is_matmul ? 2 : 4;
  if (axes.size() != 1 || axes[0] < -rank || axes[0] >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("the axis of '", concat.name(), "' is bad"));
  }
  const int64_t channel =
      !is_matmul && !graph::IsNhwc(product->def()) ? 1 : rank - 1;
  return (axes[0] + rank) % rank == channel;
}

absl::Status ScaleAndShiftPlanner::DescendConcat(NodeId concat,
                                                 const ChannelAffine& outer,
                                                 int depth) {
  const graph::Node& node = graph_.node(concat);
  OPTFARM_ASSIGN_OR_RETURN(const bool along, IsAlongChannels(node));
  absl::flat_hash_set<NodeId> seen;
  size_t begin = 0;
  int input = graph::RowOf(node.op()).has_axis_first ? 1 : 0;
  const size_t width = std::max(outer.scale.size(), outer.shift.size());
  for (const Endpoint& part : Parts(node)) {
    if (part.port != 0 || !seen.insert(part.node).second) {
      return absl::FailedPreconditionError(
          absl::StrCat("'", node.name(), "' joins a tensor with itself"));
    }
    ChannelAffine share = outer;
    if (along && width > 1) {
      OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                               Channels(part.node, depth + 1));
      const auto count = static_cast<size_t>(channels);
      if (count > width - begin) {
        return absl::FailedPreconditionError(
            absl::StrCat("'", node.name(),
                         "' has more channels than there "
                         "are constants"));
      }
      share = outer.Slice(begin, count);
      begin += count;
    }
    OPTFARM_RETURN_IF_ERROR(
        Descend(part.node, concat, input++, std::move(share), depth + 1));
  }
  if (begin != 0 && begin != width) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", node.name(), "' has fewer channels than there are constants"));
  }
  return absl::OkStatus();
}

bool ScaleAndShiftPlanner::HasTranspose(const std::vector<NodeId>& path) const {
  return std::any_of(path.begin(), path.end(),
                     [&](NodeId id) { return IsTranspose(graph_.node(id)); });
}

absl::Status ScaleAndShiftPlanner::DescendTranspose(NodeId transpose,
                                                    ChannelAffine outer,
                                                    int depth) {
  const graph::Node& node = graph_.node(transpose);
  const graph::Node& order = graph_.node(node.inputs()[1].node);
  if (!IsConst(order) || node.inputs()[0].port != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the order of '", node.name(), "' is not constant"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor value, ConstValue(order));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, value.AsInt64s());
  const int rank = static_cast<int>(axes.size());
  const int axis = rank - 1 - outer.channel_axis;
  if (outer.rank > rank || axis < 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the constants have more dimensions than '", node.name(), "'"));
  }
  if (outer.channel_axis >= 0) {
    const int64_t source = axes[static_cast<size_t>(axis)];
    if (source < 0 || source >= rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("the order of '", node.name(), "' is bad"));
    }
    outer.channel_axis = rank - 1 - static_cast<int>(source);
  }
  return Descend(node.inputs()[0].node, transpose, 0, std::move(outer),
                 depth + 1);
}

absl::Status ScaleAndShiftPlanner::DescendBatchToSpace(
    NodeId space, const ChannelAffine& outer, int depth) {
  const graph::Node& node = graph_.node(space);
  const graph::Node& block = graph_.node(node.inputs()[1].node);
  std::vector<NodeId> path;
  const graph::Node* product = ProductBelow(node.inputs()[0].node, &path);
  if (node.inputs()[0].port != 0 || !IsConst(block) || product == nullptr ||
      graph::IsFloatMatMul(product->op()) || !graph::IsNhwc(product->def()) ||
      HasTranspose(path)) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", node.name(), "' may move channels"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor sizes, ConstValue(block));
  if (sizes.num_elements() > 2) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", node.name(), "' moves channels"));
  }
  return Descend(node.inputs()[0].node, space, 0, outer, depth + 1);
}

}  // namespace optfarm::transforms
