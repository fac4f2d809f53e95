// From argv to a command that is ready to run, or a help page, or an error that
// says what to type instead.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_LINE_H_
#define OPTFARM_CLIENT_CLI_COMMAND_LINE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client_cli/command/command.h"

namespace optfarm::client_cli {

struct ParsedCommandLine {
  GlobalFlags global;
  // Null when `help` is what was asked for.
  std::unique_ptr<Command> command;
  // A page to print instead of running a command; "" otherwise.
  std::string help;
};

// Parses the words after the program's name. `--flag=value` and `--flag value`
// mean the same; global flags may stand before or after the command.
// `default_server` is what --server is without the flag.
// ERRORS: UsageError with one line that ends in a hint to --help.
absl::StatusOr<ParsedCommandLine> ParseCommandLine(
    const std::vector<std::string>& words,
    absl::Span<const CommandInfo> commands, const std::string& default_server);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_LINE_H_
