// Conditions whose outcome is known before the graph runs: the branch that is
// never taken goes away, the other one is always taken.

#ifndef OPTFARM_ENGINE_TRANSFORMS_CLEANUP_DEAD_BRANCHES_H_
#define OPTFARM_ENGINE_TRANSFORMS_CLEANUP_DEAD_BRANCHES_H_

#include "absl/status/status.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

// Resolves every Switch whose predicate depends on constants alone. Nodes of
// the branch not taken are removed; a Merge with one input left, and the
// Switch itself, become Identity where their name or order is needed and
// disappear elsewhere. Counts removed nodes as changes.
// ERRORS: FailedPrecondition, when the graph is not changed any further, for a
// declared output that is never computed or a declared input that stands in a
// removed branch; InvalidArgument for a cyclic graph.
absl::Status RemoveDeadBranches(TransformContext* context, graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_CLEANUP_DEAD_BRANCHES_H_
