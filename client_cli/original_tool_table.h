// Every tool of TensorFlow's that optctl stands in for.
// cmake/original_tools.cmake makes the links and has the same names.

#ifndef OPTFARM_CLIENT_CLI_ORIGINAL_TOOL_TABLE_H_
#define OPTFARM_CLIENT_CLI_ORIGINAL_TOOL_TABLE_H_

#include <vector>

#include "client_cli/command/original_tool.h"

namespace optfarm::client_cli {

std::vector<OriginalTool> AllOriginalTools();

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_ORIGINAL_TOOL_TABLE_H_
