// The command line of optfarm-worker.

#ifndef OPTFARM_WORKER_FLAGS_H_
#define OPTFARM_WORKER_FLAGS_H_

#include <optional>

#include "absl/time/time.h"
#include "rpc/participant_flags.h"

namespace optfarm::worker {

struct Flags {
  rpc::ParticipantFlags shared;
  // UNITS: tasks at once.
  int slots = 1;
  // UNITS: threads of one task.
  int threads = 0;
  // How long it goes without a task before it ends.
  absl::Duration exit_when_idle = absl::InfiniteDuration();
};

// Reads the command line; defaults that depend on the machine are filled in.
// Returns nullopt, when there is nothing left to do but to exit with
// `*exit_code` (2: wrong usage).
std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code);

}  // namespace optfarm::worker

#endif  // OPTFARM_WORKER_FLAGS_H_
