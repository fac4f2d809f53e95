// optctl: the command line of Optfarm. Parses, builds what commands need, runs
// one command, and turns its outcome into an exit code.

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/original_tool.h"
#include "client_cli/command_line.h"
#include "client_cli/command_table.h"
#include "client_cli/original_tool_table.h"

namespace optfarm::client_cli {
namespace {

// Colours are the user's to refuse (https://no-color.org).
bool NoColor() {
  const char* set = std::getenv("NO_COLOR");
  return set != nullptr && *set != '\0';
}

std::string DefaultServer() {
  const char* set = std::getenv("OPTFARM_SERVER");
  return set != nullptr && *set != '\0' ? set : "127.0.0.1:7070";
}

int Fail(const absl::Status& status) {
  // Messages may quote names out of a model that somebody else made.
  std::cerr << "optctl: " << PrintableText(status.message()) << "\n";
  return static_cast<int>(ExitCodeOf(status));
}

CommandContext MakeContext(const std::vector<std::string>& words) {
  CommandContext context;
  context.out = &std::cout;
  context.err = &std::cerr;
  context.err_is_terminal = isatty(STDERR_FILENO) != 0;
  context.color = isatty(STDOUT_FILENO) != 0 && !NoColor();
  context.clock = RealClock();
  context.words = words;
  context.connect = [] {
    return absl::FailedPreconditionError("this command works without a server");
  };
  return context;
}

int Main(const std::vector<std::string>& words) {
  const std::vector<CommandInfo> commands = AllCommands();
  absl::StatusOr<ParsedCommandLine> parsed =
      ParseCommandLine(words, commands, DefaultServer());
  if (!parsed.ok()) return Fail(parsed.status());
  if (parsed->command == nullptr) {
    std::cout << parsed->help;
    return 0;
  }
  CommandContext context = MakeContext(words);
  context.format = parsed->global.format;
  context.connect = [&global = parsed->global] {
    return MakeFarmClient({global.server, global.token_file, global.tls_ca,
                           global.tls_cert, global.tls_key});
  };
  absl::StatusOr<ExitCode> code = parsed->command->Run(context);
  std::cout.flush();
  if (!code.ok()) return Fail(code.status());
  if (!std::cout) {
    return Fail(absl::UnavailableError("the output could not be written"));
  }
  return static_cast<int>(*code);
}

// The name that the program is called by decides what it is.
int Dispatch(const std::vector<std::string>& argv) {
  const std::vector<std::string> words(argv.begin() + (argv.empty() ? 0 : 1),
                                       argv.end());
  const std::vector<OriginalTool> tools = AllOriginalTools();
  const OriginalTool* tool =
      FindOriginalTool(tools, argv.empty() ? "" : argv[0]);
  if (tool == nullptr) return Main(words);
  return RunOriginalTool(*tool, MakeContext(words));
}

}  // namespace
}  // namespace optfarm::client_cli

int main(int argc, char** argv) {
  // A reader that goes away (`optctl list | head`) ends us quietly; a broken
  // connection to the server is an error like others.
  signal(SIGPIPE, SIG_DFL);
  optfarm::SetUpLog("optctl", optfarm::LogLevel::kWarning);
  return optfarm::client_cli::Dispatch(
      std::vector<std::string>(argv, argv + argc));
}
