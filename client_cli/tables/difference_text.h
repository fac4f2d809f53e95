// A difference of two graphs as a sentence, as compare_graphs has it.

#ifndef OPTFARM_CLIENT_CLI_TABLES_DIFFERENCE_TEXT_H_
#define OPTFARM_CLIENT_CLI_TABLES_DIFFERENCE_TEXT_H_

#include <string>

#include "engine/inspect/graph_difference.h"

namespace optfarm::client_cli {

// "Node 'a' has op 'X' in the first graph and 'Y' in the second".
std::string DifferenceText(const inspect::NodeDifference& difference);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_DIFFERENCE_TEXT_H_
