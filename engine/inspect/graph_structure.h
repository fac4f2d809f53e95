// The nodes of a graph as text, as summarize_graph --print_structure has them.

#ifndef OPTFARM_ENGINE_INSPECT_GRAPH_STRUCTURE_H_
#define OPTFARM_ENGINE_INSPECT_GRAPH_STRUCTURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::inspect {

// One line a node in execution order, without newline: "name (Op): [in1, in2]";
// constants with their first three values:
// ", value=Tensor<type: float shape: [2,2] values: [1 2][3]...>".
// ERRORS: InvalidArgument for a graph with a cycle, duplicate names or unknown
// inputs.
absl::StatusOr<std::vector<std::string>> PrintGraphStructure(
    const tensorflow::GraphDef& graph);

}  // namespace optfarm::inspect

#endif  // OPTFARM_ENGINE_INSPECT_GRAPH_STRUCTURE_H_
