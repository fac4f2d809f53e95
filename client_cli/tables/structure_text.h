// Nodes of a graph as lines, as summarize_graph --print_structure has them.

#ifndef OPTFARM_CLIENT_CLI_TABLES_STRUCTURE_TEXT_H_
#define OPTFARM_CLIENT_CLI_TABLES_STRUCTURE_TEXT_H_

#include <string>
#include <vector>

#include "engine/inspect/graph_structure.h"

namespace optfarm::client_cli {

// One line a node, without newline: "name (Op): [in1, in2]"; constants with
// their first values:
// ", value=Tensor<type: float shape: [2,2] values: [1 2][3]...>".
std::vector<std::string> StructureLines(
    const std::vector<inspect::StructureNode>& structure);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_STRUCTURE_TEXT_H_
