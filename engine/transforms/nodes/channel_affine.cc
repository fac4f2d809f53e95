#include "engine/transforms/nodes/channel_affine.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/transforms/nodes/batch_norm.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

// A constant that is the same for all elements of a channel.
struct ChannelVector {
  std::vector<double> values;
  int channel_axis = -1;
  int rank = 0;
};

// nullopt when the tensor is no such constant.
std::optional<ChannelVector> ReadVector(const Graph& graph, Endpoint tensor) {
  const graph::Node& node = graph.node(tensor.node);
  if (!IsConst(node) || tensor.port != 0) return std::nullopt;
  const absl::StatusOr<FloatView> view = FloatView::Of(node);
  if (!view.ok() || view->values().empty()) return std::nullopt;
  ChannelVector vector;
  vector.rank = view->shape().rank();
  for (int axis = 0; axis < vector.rank; ++axis) {
    if (view->shape().dim(axis) == 1) continue;
    if (vector.channel_axis >= 0) return std::nullopt;
    vector.channel_axis = vector.rank - 1 - axis;
  }
  vector.values.assign(view->values().begin(), view->values().end());
  for (double value : vector.values) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return vector;
}

bool IsBinaryArithmetic(graph::OpRole role) {
  return role == graph::OpRole::kAdd || role == graph::OpRole::kSubtract ||
         role == graph::OpRole::kMultiply || role == graph::OpRole::kDivide;
}

int ChannelAxisOf(const graph::Node& node) {
  const auto format = graph::GetDataFormat(node.def());
  return format.ok() && graph::HasChannelsFirst(*format) ? 2 : 0;
}

absl::StatusOr<std::optional<AffineNode>> ReadNorm(const Graph& graph,
                                                   NodeId id) {
  OPTFARM_ASSIGN_OR_RETURN(const BatchNorm norm, ReadBatchNorm(graph, id));
  AffineNode node;
  node.affine.scale.assign(norm.scale.begin(), norm.scale.end());
  node.affine.shift.assign(norm.offset.begin(), norm.offset.end());
  const bool is_old =
      graph::HasRole(graph.node(id).op(), graph::OpRole::kGlobalBatchNorm);
  node.affine.channel_axis = is_old ? 0 : ChannelAxisOf(graph.node(id));
  node.affine.rank = 4;
  node.affine.scales = true;
  return node;
}

// The binary op's meaning, with the constant as input `constant_input`; false
// when it is not linear in the other.
bool Interpret(graph::OpRole role, int constant_input,
               std::vector<double> values, ChannelAffine* affine) {
  if (role == graph::OpRole::kMultiply) {
    affine->scale = std::move(values);
    affine->scales = true;
    return true;
  }
  if (role == graph::OpRole::kDivide) {
    if (constant_input == 0) return false;
    for (double& value : values) value = 1.0 / value;
    affine->scale = std::move(values);
    affine->scales = true;
    return true;
  }
  const bool subtracts = role == graph::OpRole::kSubtract;
  if (subtracts && constant_input == 0) {
    affine->scale = {-1};
    affine->scales = true;
  } else if (subtracts) {
    for (double& value : values) value = -value;
  }
  affine->shift = std::move(values);
  return true;
}

// `values` for as many channels as there are; empty when the two numbers of
// channels contradict each other.
std::vector<double> Broadcast(std::vector<double> values, size_t channels) {
  if (values.size() == channels) return values;
  if (values.size() != 1) return {};
  return std::vector<double>(channels, values[0]);
}

}  // namespace

absl::Status ChannelAffine::ComposeWith(const ChannelAffine& inner) {
  const size_t channels = std::max(
      {scale.size(), shift.size(), inner.scale.size(), inner.shift.size()});
  std::vector<double> outer_scale = Broadcast(scale, channels);
  std::vector<double> outer_shift = Broadcast(shift, channels);
  const std::vector<double> inner_scale = Broadcast(inner.scale, channels);
  const std::vector<double> inner_shift = Broadcast(inner.shift, channels);
  if (outer_scale.empty() || outer_shift.empty() || inner_scale.empty() ||
      inner_shift.empty() ||
      (channel_axis >= 0 && inner.channel_axis >= 0 &&
       channel_axis != inner.channel_axis)) {
    return absl::InvalidArgumentError(
        "its constants do not have one number for each channel");
  }
  for (size_t c = 0; c < channels; ++c) {
    outer_shift[c] += outer_scale[c] * inner_shift[c];
    outer_scale[c] *= inner_scale[c];
  }
  scale = std::move(outer_scale);
  shift = std::move(outer_shift);
  channel_axis = std::max(channel_axis, inner.channel_axis);
  rank = std::max(rank, inner.rank);
  scales = scales || inner.scales;
  return absl::OkStatus();
}

ChannelAffine ChannelAffine::Slice(size_t begin, size_t count) const {
  ChannelAffine part = *this;
  for (std::vector<double>* values : {&part.scale, &part.shift}) {
    if (values->size() == 1) continue;
    *values = std::vector<double>(values->begin() + begin,
                                  values->begin() + begin + count);
  }
  return part;
}

absl::StatusOr<std::optional<AffineNode>> ReadAffineNode(const Graph& graph,
                                                         NodeId id) {
  const graph::Node& node = graph.node(id);
  const graph::OpRole role = graph::RowOf(node.op()).role;
  if (role == graph::OpRole::kBatchNorm ||
      role == graph::OpRole::kGlobalBatchNorm) {
    if (node.inputs().size() != 5) return std::nullopt;
    return ReadNorm(graph, id);
  }
  const bool is_bias = role == graph::OpRole::kBiasAdd;
  if ((!is_bias && !IsBinaryArithmetic(role)) || node.inputs().size() != 2) {
    return std::nullopt;
  }
  for (int constant : {1, 0}) {
    if (is_bias && constant == 0) break;
    std::optional<ChannelVector> vector =
        ReadVector(graph, node.inputs()[static_cast<size_t>(constant)]);
    if (!vector.has_value()) continue;
    AffineNode result;
    result.data_input = 1 - constant;
    result.affine.channel_axis =
        is_bias ? ChannelAxisOf(node) : vector->channel_axis;
    result.affine.rank = vector->rank;
    if (!Interpret(role, constant, std::move(vector->values), &result.affine)) {
      continue;
    }
    for (double factor : result.affine.scale) {
      if (std::isfinite(factor)) continue;
      return absl::FailedPreconditionError("it divides by zero");
    }
    return result;
  }
  return std::nullopt;
}

}  // namespace optfarm::transforms
