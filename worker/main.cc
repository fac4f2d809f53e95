// optfarm-worker: leases optimize tasks and runs each in a child process.

#include "base/deadlock_checks.h"
#include "base/log.h"
#include "worker/flags.h"
#include "worker/worker.h"

int main(int argc, char** argv) {
  optfarm::TurnOffDeadlockChecks();
  int exit_code = 0;
  const auto flags = optfarm::worker::ParseFlags(argc, argv, &exit_code);
  if (!flags) return exit_code;
  if (!flags->shared.run_task.empty()) {
    optfarm::SetUpLog("task", optfarm::LogLevel::kInfo);
    return optfarm::worker::RunChild(*flags);
  }
  optfarm::SetUpLog("worker", optfarm::LogLevel::kInfo);
  const absl::Status status = optfarm::worker::RunWorker(*flags);
  if (status.ok()) return 0;
  optfarm::LogError(status.ToString());
  return 1;
}
