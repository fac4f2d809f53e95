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
#include "client_cli/command/standard_streams.h"

namespace optfarm::client_cli {

struct ParsedCommandLine {
  GlobalFlags global;
  // Null when `help` is what was asked for.
  std::unique_ptr<Command> command;
  // A page to print instead of running a command; "" otherwise.
  std::string help;
};

// The flags that every command has, for those who describe them: nothing is
// stored.
FlagSet GlobalFlagSet();

// Parses the words after the program's name. `--flag=value` and `--flag value`
// mean the same; global flags may stand before or after the command; "help
// COMMAND" is COMMAND --help. With `streams`, "-" as a file that is read or
// written is one of theirs.
// ERRORS: UsageError with one line that ends in a hint to --help.
absl::StatusOr<ParsedCommandLine> ParseCommandLine(
    const std::vector<std::string>& words,
    absl::Span<const CommandInfo> commands, StandardStreams* streams = nullptr);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_LINE_H_
