// Completion of command lines in shells, from the commands' own flags: a
// script for each shell asks optctl what could come next.

#ifndef OPTFARM_CLIENT_CLI_COMPLETION_H_
#define OPTFARM_CLIENT_CLI_COMPLETION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client_cli/command/command.h"

namespace optfarm::client_cli {

// What could be typed in place of a word.
struct Completion {
  // A file's name could be, too.
  bool files = false;
  // A flag with a value ends in "=".
  std::vector<std::string> words;
};

// Names that are not known before somebody asks: "job", "device", "recipe",
// "context".
using LiveNames =
    std::function<std::vector<std::string>(absl::string_view kind)>;

// `before` are the words between the program's name and the one that is being
// typed, of which `current` is there so far. All words begin with it.
Completion Complete(absl::Span<const CommandInfo> commands,
                    const FlagSet& global,
                    const std::vector<std::string>& before,
                    const std::string& current, const LiveNames& live);

// The text that the scripts read: ":files" or ":words", then a word a line.
std::string CompletionText(const Completion& completion);

// What a user adds to the shell: "bash", "zsh" or "fish".
// ERRORS: InvalidArgument for another one.
absl::StatusOr<std::string> CompletionScript(absl::string_view shell);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMPLETION_H_
