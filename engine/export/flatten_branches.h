// Branches (If) as nodes of the graph itself, for formats whose writers have no
// functions.

#ifndef OPTFARM_ENGINE_EXPORT_FLATTEN_BRANCHES_H_
#define OPTFARM_ENGINE_EXPORT_FLATTEN_BRANCHES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::exporting {

// A tensor that the model is fed with, and its shape.
struct FedShape {
  graph::Endpoint tensor;
  graph::PartialShape shape;
};

// Replaces each If that `outputs` need. Where the inputs' shapes decide its
// condition, the branch that is taken stands in its place, Ifs inside of it
// included. Any other is replaced by both branches and a choice between their
// results: only when all results of a branch have the same known shapes as the
// other's, and nothing in them has an effect. Nodes keep their names and
// outputs. An If that cannot be replaced stays as it is.
// ERRORS: InvalidArgument for branches that are not well formed or grow the
// graph beyond all bounds; the graph is then of no use.
absl::Status FlattenBranches(absl::Span<const FedShape> inputs,
                             absl::Span<const graph::Endpoint> outputs,
                             graph::Graph* graph);

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_FLATTEN_BRANCHES_H_
