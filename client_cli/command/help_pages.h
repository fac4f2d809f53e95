// The help pages: all commands, a group of commands, one command.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_HELP_PAGES_H_
#define OPTFARM_CLIENT_CLI_COMMAND_HELP_PAGES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client_cli/command/command.h"

namespace optfarm::client_cli {

// The page of `optctl --help`; with a group ("graph") only its commands.
std::string OverviewPage(absl::Span<const CommandInfo> commands,
                         const FlagSet& global, absl::string_view group = "");

// "Usage: PROGRAM MODEL --recipe=NAME [flags]", over as many lines as it needs.
std::string UsageLine(absl::string_view program, const FlagSet& flags);

// A line for each exit code, and for each variable of the environment.
std::string ExitCodesText();
std::string EnvironmentText();

// The page of `optctl COMMAND --help`.
std::string CommandPage(const CommandInfo& command, const FlagSet& flags,
                        const FlagSet& global);

// The page of one of TensorFlow's tools: `transform_graph --help`. `command` is
// what optctl calls it.
std::string OriginalToolPage(absl::string_view tool, absl::string_view command,
                             const FlagSet& flags);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_HELP_PAGES_H_
