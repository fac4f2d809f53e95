#include "engine/transforms/nodes/batch_norm.h"

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

// Where each parameter stands, and how the node is configured.
struct Layout {
  int mean = 0;
  int variance = 0;
  int beta = 0;
  int gamma = 0;
  float epsilon = 0;
  bool use_gamma = true;
};

absl::StatusOr<Layout> ReadLayout(const graph::Node& node) {
  if (graph::HasRole(node.op(), graph::OpRole::kGlobalBatchNorm)) {
    Layout layout{.mean = 1, .variance = 2, .beta = 3, .gamma = 4};
    OPTFARM_ASSIGN_OR_RETURN(layout.epsilon,
                             graph::GetFloat(node.def(), "variance_epsilon"));
    OPTFARM_ASSIGN_OR_RETURN(
        layout.use_gamma,
        graph::GetBool(node.def(), "scale_after_normalization"));
    return layout;
  }
  Layout layout{.mean = 3, .variance = 4, .beta = 2, .gamma = 1};
  OPTFARM_ASSIGN_OR_RETURN(layout.epsilon,
                           graph::GetFloatOr(node.def(), "epsilon", 0.0001f));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_training,
                           graph::GetBoolOr(node.def(), "is_training", true));
  if (is_training) {
    return absl::FailedPreconditionError(
        "it has is_training=true and normalizes by the statistics of its "
        "input");
  }
  return layout;
}

absl::StatusOr<std::vector<float>> ReadParameter(const graph::Graph& graph,
                                                 const graph::Node& node,
                                                 int input,
                                                 absl::string_view name) {
  const graph::Node& source = graph.node(node.inputs()[input].node);
  if (!IsConst(source) || node.inputs()[input].port != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("its ", name, " is not constant"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Tensor value,
                           FloatConstValue(source));
  if (value.rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        " input to batch norm has bad shape: ", value.shape().ToString()));
  }
  const absl::Span<const float> values = value.flat<float>();
  return std::vector<float>(values.begin(), values.end());
}

}  // namespace

absl::StatusOr<BatchNorm> ReadBatchNorm(const graph::Graph& graph,
                                        graph::NodeId id) {
  const graph::Node& node = graph.node(id);
  for (const graph::Use& use : node.uses()) {
    if (use.port > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("its output ", use.port, " is used"));
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(node));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> mean,
                           ReadParameter(graph, node, layout.mean, "Mean"));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<float> variance,
      ReadParameter(graph, node, layout.variance, "Variance"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> beta,
                           ReadParameter(graph, node, layout.beta, "Beta"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> gamma,
                           ReadParameter(graph, node, layout.gamma, "gamma"));
  for (const auto& [name, size] :
       {std::pair("Variance", variance.size()), std::pair("Beta", beta.size()),
        std::pair("gamma", gamma.size())}) {
    if (size != mean.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " input to batch norm has bad shape: [", size,
                       "] for a mean of shape [", mean.size(), "]"));
    }
  }
  BatchNorm norm;
  for (size_t i = 0; i < mean.size(); ++i) {
    float scale = 1.0f / std::sqrt(variance[i] + layout.epsilon);
    if (layout.use_gamma) scale *= gamma[i];
    if (!std::isfinite(scale)) {
      return absl::InvalidArgumentError(
          absl::StrCat("its variance ", variance[i], " in channel ", i,
                       " has no finite inverse root"));
    }
    norm.scale.push_back(scale);
    norm.offset.push_back(beta[i] - mean[i] * scale);
  }
  return norm;
}

}  // namespace optfarm::transforms
