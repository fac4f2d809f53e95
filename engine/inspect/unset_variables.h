// Variables that a graph reads but nothing in it gives a value: its weights are
// in a checkpoint.

#ifndef OPTFARM_ENGINE_INSPECT_UNSET_VARIABLES_H_
#define OPTFARM_ENGINE_INSPECT_UNSET_VARIABLES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/graph/graph.h"

namespace optfarm::inspect {

// The names of the variables that `outputs` need and that no node that they
// need assigns, in the order of the graph. State that a run sets itself is no
// such variable.
std::vector<std::string> FindUnsetVariables(
    const graph::Graph& graph, absl::Span<const graph::NodeId> outputs);

}  // namespace optfarm::inspect

#endif  // OPTFARM_ENGINE_INSPECT_UNSET_VARIABLES_H_
