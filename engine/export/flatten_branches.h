// Branches (If) as nodes of the graph itself, for formats whose writers have no
// functions.

#ifndef OPTFARM_ENGINE_EXPORT_FLATTEN_BRANCHES_H_
#define OPTFARM_ENGINE_EXPORT_FLATTEN_BRANCHES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::exporting {

// A tensor that the model is fed with, and its shape.
struct FedShape {
  graph::Endpoint tensor;
  graph::PartialShape shape;
};

// What an If becomes whose condition is known at run time only.
enum class OpenBranches {
  // Both branches, and a choice between their results: where these have the
  // same known shapes.
  kBothRun,
  // The same for writers that have branches: each choice says which If it is an
  // output of (graph::kBranchesAttr). Sizes of results may be unknown, where
  // they are in both branches.
  kOneRuns,
};

// Replaces each If that `outputs` need. Where the inputs' shapes decide its
// condition, the branch that is taken stands in its place, Ifs inside of it
// included. Any other is replaced as `open` says, when nothing in its branches
// has an effect. Nodes keep their names and outputs. An If that cannot be
// replaced stays as it is.
// ERRORS: InvalidArgument for branches that are not well formed or grow the
// graph beyond all bounds; the graph is then of no use.
absl::Status FlattenBranches(absl::Span<const FedShape> inputs,
                             absl::Span<const graph::Endpoint> outputs,
                             OpenBranches open, graph::Graph* graph);

// Replaces each If by one of its branches where no run of the other could
// succeed with inputs of these shapes, and Ifs whose condition the shapes
// decide. Returns what was left out, as in "the else-branch of 'If_0'".
// ERRORS: as above.
absl::StatusOr<std::vector<std::string>> LeaveOutBranches(
    absl::Span<const FedShape> inputs,
    absl::Span<const graph::Endpoint> outputs, graph::Graph* graph);

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_FLATTEN_BRANCHES_H_
