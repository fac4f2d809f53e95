#include "worker/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

namespace optfarm::worker {

std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code) {
  Flags flags;
  CLI::App app(
      "Runs optimize tasks of an Optfarm server, each in a child process with "
      "limits.",
      "optfarm-worker");
  rpc::DeclareParticipantFlags(&app, &flags.shared);
  app.add_option("--slots", flags.slots, "Number of tasks to run at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--threads", flags.threads,
                 "Threads of one task; 0: the cores divided by the slots")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--exit_when_idle",
         [&](const std::string& text) {
           // Checked below.
           absl::ParseDuration(text, &flags.exit_when_idle);
         },
         "End, with exit code 0, after there was no task for so long, like 30s "
         "or 10m; time without a server does not count; default: never")
      ->check([](const std::string& text) {
        absl::Duration value;
        const bool is_good =
            absl::ParseDuration(text, &value) && value >= absl::Seconds(1);
        return is_good ? ""
                       : text +
                             " is not a duration like 30s, 10m or 2h, "
                             "of a second or more";
      })
      ->type_name("DURATION");
  if (!rpc::ParseParticipantFlags(&app, argc, argv, flags.shared, exit_code)) {
    return std::nullopt;
  }
  if (flags.shared.name.empty()) flags.shared.name = rpc::HostName();
  if (flags.threads == 0) {
    flags.threads = std::max(1, rpc::UsableCores() / flags.slots);
  }
  return flags;
}

}  // namespace optfarm::worker
