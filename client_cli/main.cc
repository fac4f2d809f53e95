// optctl: the command line of Optfarm. Parses, builds what commands need, runs
// one command, and turns its outcome into an exit code.

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/deadlock_checks.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client_cli/command/contexts.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/original_tool.h"
#include "client_cli/command/standard_streams.h"
#include "client_cli/command_line.h"
#include "client_cli/command_table.h"
#include "client_cli/completion.h"
#include "client_cli/manual_pages.h"
#include "client_cli/original_tool_table.h"
#include "client_cli/tables/yaml_text.h"
#include "engine/optimize/recipes/recipes.h"

namespace optfarm::client_cli {
namespace {

// Colours are the user's to refuse (https://no-color.org).
bool NoColor() {
  const char* set = std::getenv("NO_COLOR");
  return set != nullptr && *set != '\0';
}

// Whether programs read our output, as far as the words say, which may not be
// a command line that can be parsed.
bool WantsJson(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const bool separate = words[i] == "-o" || words[i] == "--format";
    if (separate && i + 1 < words.size() && words[i + 1] == "json") return true;
    if (words[i] == "--format=json" || words[i] == "-ojson") return true;
  }
  return false;
}

int Fail(const absl::Status& status, bool as_json = false) {
  const int code = static_cast<int>(ExitCodeOf(status));
  if (as_json) {
    std::cerr << "{\"error\": {\"code\": "
              << JsonString(absl::StatusCodeToString(status.code()))
              << ", \"message\": " << JsonString(status.message())
              << ", \"exit_code\": " << code << "}}\n";
  } else {
    // Messages may quote names out of a model that somebody else made.
    std::cerr << "optctl: " << PrintableText(status.message()) << "\n";
  }
  return code;
}

// UNITS: characters of a line of the terminal; 0: standard output is none.
int TerminalWidth() {
  if (isatty(STDOUT_FILENO) == 0) return 0;
  winsize size = {};
  const bool known =
      ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

CommandContext MakeContext(const std::vector<std::string>& words) {
  CommandContext context;
  context.out = &std::cout;
  context.err = &std::cerr;
  context.err_is_terminal = isatty(STDERR_FILENO) != 0;
  context.width = TerminalWidth();
  context.color = context.width > 0 && !NoColor();
  context.clock = RealClock();
  context.words = words;
  context.connect = [] {
    return absl::FailedPreconditionError("this command works without a server");
  };
  return context;
}

// Passes on what is written to it, as YAML, whenever it is flushed and all of
// it can be read as JSON.
class YamlBuffer final : public std::stringbuf {
 public:
  explicit YamlBuffer(std::ostream* out) : out_(out) {}

  int sync() override {
    const std::optional<std::string> yaml = JsonToYaml(str());
    if (!yaml || str().empty()) return 0;
    *out_ << (any_ ? "---\n" : "") << *yaml << std::flush;
    any_ = true;
    str("");
    return 0;
  }

  // What was no JSON goes as it is.
  void Finish() {
    sync();
    *out_ << str() << std::flush;
  }

 private:
  std::ostream* const out_;
  bool any_ = false;
};

absl::StatusOr<ExitCode> RunParsed(ParsedCommandLine& parsed,
                                   StandardStreams& streams,
                                   const std::vector<std::string>& words) {
  CommandContext context = MakeContext(words);
  context.format = parsed.global.format;
  context.format.width = context.width;
  context.global = &parsed.global;
  context.connect =
      [&global =
           parsed.global]() -> absl::StatusOr<std::unique_ptr<FarmClient>> {
    OPTFARM_ASSIGN_OR_RETURN(const FarmAddress address,
                             FindFarm(global, ProcessEnvironment));
    return MakeFarmClient(address);
  };
  // A file on standard output leaves no room for anything else there.
  if (streams.has_output()) context.out = &std::cerr;
  std::ostream* const out = context.out;
  YamlBuffer buffer(out);
  std::ostream yaml(&buffer);
  if (parsed.global.yaml) context.out = &yaml;
  absl::StatusOr<ExitCode> code = parsed.command->Run(context);
  buffer.Finish();
  out->flush();
  if (!code.ok()) return code;
  if (streams.has_output()) {
    OPTFARM_RETURN_IF_ERROR(streams.CopyOutput());
  }
  if (!*out) {
    return absl::UnavailableError("the output could not be written");
  }
  return code;
}

// UNITS: seconds. Nobody waits longer for names.
constexpr unsigned kCompletionSeconds = 3;
constexpr int kMostCompletedJobs = 50;

std::vector<std::string> JobIds(FarmClient& client) {
  std::vector<std::string> names = {"latest"};
  v1::ListJobsRequest request;
  request.set_page_size(kMostCompletedJobs);
  const auto response = client.ListJobs(request);
  if (!response.ok()) return names;
  for (const v1::Job& job : response->jobs()) names.push_back(job.job_id());
  return names;
}

std::vector<std::string> DeviceNames(FarmClient& client) {
  std::vector<std::string> names;
  const auto response = client.ListDevices({});
  if (!response.ok()) return names;
  for (const v1::Device& device : response->devices()) {
    names.push_back(device.info().name());
  }
  return names;
}

std::vector<std::string> NamesOfContexts() {
  std::vector<std::string> names;
  const auto path = ContextsPath(ProcessEnvironment);
  if (!path.ok()) return names;
  const auto contexts = LoadContexts(*path);
  if (!contexts.ok()) return names;
  for (const auto& [name, address] : contexts->by_name) names.push_back(name);
  return names;
}

// The flags of the line that is being typed count: --server, --context.
GlobalFlags FlagsSoFar(const std::vector<std::string>& words) {
  GlobalFlags global;
  for (const std::string& word : words) {
    absl::string_view value = word;
    if (absl::ConsumePrefix(&value, "--server=")) {
      global.server = std::string(value);
    } else if (absl::ConsumePrefix(&value, "--context=")) {
      global.context = std::string(value);
    } else if (absl::ConsumePrefix(&value, "--token_file=")) {
      global.token_file = std::string(value);
    } else if (absl::ConsumePrefix(&value, "--tls_ca=")) {
      global.tls_ca = std::string(value);
    }
  }
  return global;
}

// `optctl __complete CURRENT WORD...`, for the shells' scripts.
int PrintCompletions(const std::vector<std::string>& words) {
  alarm(kCompletionSeconds);
  const std::string current = words.size() > 1 ? words[1] : "";
  const std::vector<std::string> before(
      words.begin() +
          static_cast<std::ptrdiff_t>(std::min<size_t>(2, words.size())),
      words.end());
  const LiveNames live =
      [&](absl::string_view kind) -> std::vector<std::string> {
    if (kind == "context") return NamesOfContexts();
    if (kind == "recipe") return optimize::BuiltInRecipeNames();
    const auto address = FindFarm(FlagsSoFar(before), ProcessEnvironment);
    if (!address.ok()) return {};
    const auto client = MakeFarmClient(*address);
    if (!client.ok()) return {};
    return kind == "job" ? JobIds(**client) : DeviceNames(**client);
  };
  std::cout << CompletionText(
      Complete(AllCommands(), GlobalFlagSet(), before, current, live));
  return 0;
}

int PrintScript(const std::vector<std::string>& words) {
  const auto script = CompletionScript(words.size() == 2 ? words[1] : "");
  if (!script.ok()) return Fail(script.status());
  std::cout << *script;
  return 0;
}

// `optctl __man FOLDER`, for packages.
int WriteManualPages(const std::vector<std::string>& words) {
  for (const ManualPage& page :
       ManualPages(AllCommands(), GlobalFlagSet(), OPTFARM_VERSION)) {
    const absl::Status status = WriteFileAtomically(
        JoinPath(words.size() == 2 ? words[1] : ".", page.file), page.text);
    if (!status.ok()) return Fail(status);
  }
  return 0;
}

int Main(const std::vector<std::string>& words) {
  if (!words.empty() && words[0] == "__complete")
    return PrintCompletions(words);
  if (!words.empty() && words[0] == "__man") return WriteManualPages(words);
  if (!words.empty() && words[0] == "completion") return PrintScript(words);
  const std::vector<CommandInfo> commands = AllCommands();
  const bool as_json = WantsJson(words);
  StandardStreams streams(STDIN_FILENO, STDOUT_FILENO);
  absl::StatusOr<ParsedCommandLine> parsed =
      ParseCommandLine(words, commands, &streams);
  if (!parsed.ok()) return Fail(parsed.status(), as_json);
  if (parsed->command == nullptr) {
    std::cout << parsed->help;
    return 0;
  }
  const absl::StatusOr<ExitCode> code = RunParsed(*parsed, streams, words);
  if (!code.ok()) return Fail(code.status(), as_json);
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
  optfarm::TurnOffDeadlockChecks();
  // A reader that goes away (`optctl list | head`) ends us quietly; a broken
  // connection to the server is an error like others.
  signal(SIGPIPE, SIG_DFL);
  // What is wrong with a connection is told in one line of our own.
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);
  optfarm::SetUpLog("optctl", optfarm::LogLevel::kWarning);
  const int code = optfarm::client_cli::Dispatch(
      std::vector<std::string>(argv, argv + argc));
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
#ifdef NDEBUG
  // Nothing is left to do but to free memory, which the system does faster.
  // Leaks and coverage are looked at when a program ends by itself.
  std::_Exit(code);
#else
  return code;
#endif
}
