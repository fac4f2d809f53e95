// What a session begins and ends with: the tensors that its names mean, and the
// part of the graph that stands between them.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_GRAPH_ENDS_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_GRAPH_ENDS_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

struct GraphEnds {
  std::vector<graph::Endpoint> feeds;
  // DT_INVALID where the graph does not say.
  std::vector<DataType> feed_types;
  // The port is graph::kControlPort for an operation that is only run.
  std::vector<graph::Endpoint> fetches;
  absl::flat_hash_set<graph::Endpoint> fed;
  // By NodeId: whether the fetches need the node when the feeds are given.
  std::vector<bool> needed;
};

// ERRORS: NotFound or InvalidArgument naming the tensor.
absl::StatusOr<GraphEnds> FindEnds(const graph::Graph& graph,
                                   absl::Span<const graph::TensorName> feeds,
                                   absl::Span<const graph::TensorName> fetches);

// Unimplemented, with the node, its op and types, and what the user can do.
absl::Status NoKernelFor(const graph::Node& node);

// ERRORS: NoKernelFor's for an op that we do not know;
// InvalidArgument for attributes that do not say how many.
absl::StatusOr<int> OutputCountOf(const graph::Node& node);

// The dtype of one tensor, DT_INVALID when the graph does not say.
DataType TypeOf(const graph::Graph& graph, graph::Endpoint tensor);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_GRAPH_ENDS_H_
