// The command line of optfarm-agent.

#ifndef OPTFARM_DEVICE_AGENT_FLAGS_H_
#define OPTFARM_DEVICE_AGENT_FLAGS_H_

#include <optional>
#include <vector>

#include "rpc/participant_flags.h"

namespace optfarm::device_agent {

struct Flags {
  rpc::ParticipantFlags shared;
  // UNITS: threads; empty: the engine's default.
  std::vector<int> threads;
  // UNITS: degrees Celsius; 0: no limit.
  double max_celsius = 0;
};

// Reads the command line; defaults that depend on the machine are filled in.
// Returns nullopt, when there is nothing left to do but to exit with
// `*exit_code` (2: wrong usage).
std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code);

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_FLAGS_H_
