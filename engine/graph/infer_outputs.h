// Which ends of a graph are its outputs: the first step of infer_io.h, and what
// it shares with the others.

#ifndef OPTFARM_ENGINE_GRAPH_INFER_OUTPUTS_H_
#define OPTFARM_ENGINE_GRAPH_INFER_OUTPUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::graph {

// The graph's outputs, one or (with `take_all`) all plausible ones.
// ERRORS: FailedPrecondition with a question that lists the candidates.
absl::StatusOr<std::vector<Endpoint>> InferOutputs(const Graph& graph,
                                                   bool take_all);

bool IsPlaceholder(const Node& node);
// One that needs no feed.
bool IsOptionalPlaceholder(const Node& node);

// The port's type; DT_INVALID when the op is not known or the port not there.
tensorflow::DataType TypeOf(const Graph& graph, Endpoint tensor);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_INFER_OUTPUTS_H_
