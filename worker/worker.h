// What optfarm-worker does, in its two roles: the worker that leases tasks,
// and the child process that does one of them.

#ifndef OPTFARM_WORKER_WORKER_H_
#define OPTFARM_WORKER_WORKER_H_

#include "absl/status/status.h"
#include "worker/flags.h"

namespace optfarm::worker {

// Leases optimize tasks until SIGTERM. ERRORS: those of RunParticipant.
absl::Status RunWorker(const Flags& flags);

// Does the task in folder flags.shared.run_task; returns the exit status.
int RunChild(const Flags& flags);

}  // namespace optfarm::worker

#endif  // OPTFARM_WORKER_WORKER_H_
