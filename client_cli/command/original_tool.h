// TensorFlow's own command-line tools by their names: a link named
// transform_graph that points at optctl takes transform_graph's flags with its
// defaults, prints what it prints and ends with its exit codes.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_ORIGINAL_TOOL_H_
#define OPTFARM_CLIENT_CLI_COMMAND_ORIGINAL_TOOL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_cli/command/command.h"

namespace optfarm::client_cli {

enum class OriginalLanguage {
  // Flags are exact and booleans lower-case.
  kCpp,
  // Booleans in any case, --noflag, and any beginning of a flag's name that
  // fits only one.
  kPython,
};

// What a tool's process ends with besides 0.
struct OriginalExitCodes {
  // A flag or argument is wrong.
  int usage;
  // A file that it should read is not there.
  int missing_file;
  // Any other error.
  int error;
  // The answer is no and already printed: Run gave kJobFailed as a value.
  int negative;
};

inline constexpr OriginalExitCodes kCppExitCodes = {255, 255, 255, 255};
inline constexpr OriginalExitCodes kPythonExitCodes = {2, 1, 1, 1};
// Tools in Python whose main returns -1 where a file is missing.
inline constexpr OriginalExitCodes kPythonMainExitCodes = {2, 255, 1, 1};

struct OriginalTool {
  // The link's name; a Python tool's may also end in ".py".
  const char* name;
  // The command of optctl that does the same: "graph transform".
  const char* command;
  OriginalLanguage language = OriginalLanguage::kCpp;
  OriginalExitCodes exit_codes = kCppExitCodes;
  // Makes the command as the original has it: its flags, defaults and output.
  std::unique_ptr<Command> (*create)();
};

// The tool that a program name ("/usr/bin/freeze_graph.py") means; null when it
// means none of `tools`. OWNERSHIP: points into `tools`.
const OriginalTool* FindOriginalTool(const std::vector<OriginalTool>& tools,
                                     absl::string_view program);

// Stores the words after the program's name. `--flag=value` and `--flag value`
// mean the same, and as in the originals the last of two wins. Returns whether
// --help was among them; nothing is checked then.
// ERRORS: UsageError in one line.
absl::StatusOr<bool> ParseOriginalFlags(const std::vector<std::string>& words,
                                        OriginalLanguage language,
                                        const FlagSet& flags);

// Runs `tool`: parses, runs, prints errors to `context.err`. Returns what the
// process should end with.
int RunOriginalTool(const OriginalTool& tool, const CommandContext& context);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_ORIGINAL_TOOL_H_
