// cluster_weights: lets large float constants take few different values, so
// that the file compresses better, as round_weights does, but puts the values
// where the weights are: fewer of them do for the same error. The number of
// bytes stays.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/quantizing/value_clusters.h"

namespace optfarm::transforms {
namespace {

using graph::NodeId;

constexpr int64_t kMostClusters = 65536;

absl::Status ClusterWeights(graph::Graph* graph, TransformContext* context) {
  const int64_t count = context->arguments().Int("num_clusters");
  if (count < 2 || count > kMostClusters) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'num_clusters' is ", count,
                     ", not within 2 and ", kMostClusters));
  }
  const int64_t minimum = context->arguments().Int("minimum_size");
  const std::vector<std::string> nodes =
      context->arguments().Strings("exclude_node");
  const absl::flat_hash_set<std::string> excluded(nodes.begin(), nodes.end());
  for (const NodeId id : graph->Ids()) {
    graph::Node* node = graph->mutable_node(id);
    if (!IsConst(*node) || excluded.contains(node->name())) continue;
    const auto view = FloatView::Of(*node);
    if (!view.ok() || view->values().empty() ||
        view->shape().num_elements() < minimum) {
      continue;
    }
    const absl::Span<const float> values = view->values();
    if (!absl::c_all_of(values, [](float v) { return std::isfinite(v); })) {
      context->Skip(node->name(), "it holds NaN or infinite values");
      continue;
    }
    const std::vector<float> clusters = FindClusters(values, count);
    for (float& value : MutableFloats(node)) {
      value = NearestCluster(clusters, value);
    }
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef ClusterWeightsTransform() {
  return {.name = "cluster_weights",
          .summary =
              "Replaces the values of large float constants by few that are "
              "placed for the least squared error, so the file compresses "
              "better.",
          .parameters = {{.name = "num_clusters",
                          .type = ParameterType::kInt,
                          .help = "Most distinct values per constant.",
                          .default_value = "256"},
                         {.name = "minimum_size",
                          .type = ParameterType::kInt,
                          .help = "Constants with fewer elements are not "
                                  "changed.",
                          .default_value = "1024"},
                         {.name = "exclude_node",
                          .help = "Name of a constant that is not changed.",
                          .repeated = true}},
          .run = ClusterWeights};
}

}  // namespace optfarm::transforms
