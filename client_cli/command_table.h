// Every command of optctl, in the order of the help page.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_TABLE_H_
#define OPTFARM_CLIENT_CLI_COMMAND_TABLE_H_

#include <vector>

#include "client_cli/command/command.h"

namespace optfarm::client_cli {

std::vector<CommandInfo> AllCommands();

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_TABLE_H_
