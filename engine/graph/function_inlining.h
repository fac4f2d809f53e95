// Replaces calls by what they call: functions of the graph's library, and the
// ops that take functions (PartitionedCall, If, Case, While), which become the
// nodes that Switch, Merge and loops are made of.

#ifndef OPTFARM_ENGINE_GRAPH_FUNCTION_INLINING_H_
#define OPTFARM_ENGINE_GRAPH_FUNCTION_INLINING_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"

namespace optfarm::graph {

// Whether `roots` need a node that calls a function: its op is one of the
// library, or it takes functions as attributes. Nodes in `fed` are not called,
// and nothing is needed for them.
bool HasCalls(const Graph& graph, absl::Span<const NodeId> roots,
              absl::Span<const NodeId> fed);

// Inlines every call that `roots` need, calls within calls included. A call's
// node keeps its name and its outputs; what it called stands beside it as
// "name/...". Tensors within functions are copied once for each call.
// ERRORS: InvalidArgument naming the call for a function that is not there, is
// not well formed, calls itself, or grows the graph beyond all bounds;
// Unimplemented for a call that has no form without functions.
absl::Status InlineCalls(absl::Span<const NodeId> roots,
                         absl::Span<const NodeId> fed, Graph* graph);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_FUNCTION_INLINING_H_
