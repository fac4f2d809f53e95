#include "device_agent/flags.h"

#include <CLI/CLI.hpp>

namespace optfarm::device_agent {

std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code) {
  Flags flags;
  CLI::App app(
      "Lets an Optfarm server measure graphs on this machine, one benchmark at "
      "a time, each in a child process with limits.",
      "optfarm-agent");
  rpc::DeclareParticipantFlags(&app, &flags.shared);
  app.add_option("--threads", flags.threads,
                 "Thread counts measured where a job does not say, for example "
                 "1,4; default: 1 and 4, or 1 and all")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--max_celsius", flags.max_celsius,
                 "No benchmark begins while the machine is hotter; 0: no such "
                 "limit")
      ->check(CLI::Range(0.0, 200.0))
      ->capture_default_str();
  if (!rpc::ParseParticipantFlags(&app, argc, argv, flags.shared, exit_code)) {
    return std::nullopt;
  }
  if (flags.shared.name.empty()) flags.shared.name = rpc::HostName();
  return flags;
}

}  // namespace optfarm::device_agent
