// What optfarm-agent does, in its two roles: the agent that leases tasks, and
// the child process that does one of them.

#ifndef OPTFARM_DEVICE_AGENT_AGENT_H_
#define OPTFARM_DEVICE_AGENT_AGENT_H_

#include "absl/status/status.h"
#include "device_agent/flags.h"

namespace optfarm::device_agent {

// Leases benchmark tasks until SIGTERM. ERRORS: those of RunParticipant.
absl::Status RunAgent(const Flags& flags);

// Does the task in folder flags.shared.run_task; returns the exit status.
int RunChild(const Flags& flags);

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_AGENT_H_
