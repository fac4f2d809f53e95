// optfarm-agent: leases benchmark tasks and runs each in a child process.

#include "base/deadlock_checks.h"
#include "base/log.h"
#include "device_agent/agent.h"
#include "device_agent/flags.h"

int main(int argc, char** argv) {
  optfarm::TurnOffDeadlockChecks();
  int exit_code = 0;
  const auto flags = optfarm::device_agent::ParseFlags(argc, argv, &exit_code);
  if (!flags) return exit_code;
  if (!flags->shared.run_task.empty()) {
    optfarm::SetUpLog("task", optfarm::LogLevel::kInfo);
    return optfarm::device_agent::RunChild(*flags);
  }
  optfarm::SetUpLog("agent", optfarm::LogLevel::kInfo);
  const absl::Status status = optfarm::device_agent::RunAgent(*flags);
  if (status.ok()) return 0;
  optfarm::LogError(status.ToString());
  return 1;
}
