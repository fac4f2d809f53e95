#include "device_agent/agent.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "device_agent/benchmark_plan.h"
#include "device_agent/device_driver.h"
#include "rpc/participant.h"
#include "rpc/task_child.h"

namespace optfarm::device_agent {
namespace {

std::unique_ptr<DeviceDriver> MakeDriver(const Flags& flags) {
  return MakeLocalDriver({flags.shared.name, flags.threads, flags.max_celsius});
}

v1::DeviceStatus StatusOf(DeviceDriver* driver, const v1::DeviceInfo& info,
                          int active) {
  v1::DeviceStatus status;
  *status.mutable_info() = info;
  if (active > 0) return status;
  const absl::Status ready = driver->CheckReady();
  status.set_ready(ready.ok());
  status.set_reason(std::string(ready.message()));
  return status;
}

std::vector<std::string> ChildCommand(const Flags& flags,
                                      const rpc::TaskFolder& folder) {
  std::vector<std::string> argv = {OwnProgramPath(),
                                   absl::StrCat("--run_task=", folder.path()),
                                   absl::StrCat("--name=", flags.shared.name)};
  if (!flags.threads.empty()) {
    argv.push_back(
        absl::StrCat("--threads=", absl::StrJoin(flags.threads, ",")));
  }
  return argv;
}

absl::StatusOr<v1::Completion> Measure(const v1::LeasedTask& lease,
                                       const rpc::TaskFolder& folder,
                                       const rpc::ChildProgress& progress,
                                       const Flags& flags) {
  v1::Completion completion;
  OPTFARM_ASSIGN_OR_RETURN(
      *completion.mutable_benchmark(),
      MakeDriver(flags)->Measure(lease.benchmark(), GraphPaths(lease, folder),
                                 progress));
  return completion;
}

}  // namespace

absl::Status RunAgent(const Flags& flags) {
  const std::unique_ptr<DeviceDriver> driver = MakeDriver(flags);
  rpc::ParticipantOptions options;
  options.channel = rpc::ChannelFrom(flags.shared);
  options.program = "optfarm-agent";
  options.kind = v1::SynchronizeRequest::AGENT;
  options.name = flags.shared.name;
  options.build_version = OPTFARM_VERSION;
  options.devices = [&driver, info = driver->Describe()](int active) {
    return std::vector<v1::DeviceStatus>{StatusOf(driver.get(), info, active)};
  };
  options.runner.work_folder = flags.shared.work_dir;
  options.runner.cache_bytes = flags.shared.cache_mb << 20;
  options.runner.plan =
      [&flags, limits = rpc::LimitsFrom(flags.shared, 1)](
          const v1::LeasedTask& lease,
          const rpc::TaskFolder& folder) -> absl::StatusOr<rpc::TaskPlan> {
    rpc::TaskPlan plan;
    OPTFARM_ASSIGN_OR_RETURN(plan.inputs,
                             BenchmarkInputs(lease, flags.shared.name));
    plan.argv = ChildCommand(flags, folder);
    plan.limits = limits;
    return plan;
  };
  options.runner.finish = [&flags](const v1::LeasedTask&,
                                   const std::vector<v1::Artifact>&,
                                   v1::Completion* completion) {
    return CheckMeasured(flags.shared.name, *completion);
  };
  return rpc::RunParticipant(std::move(options));
}

int RunChild(const Flags& flags) {
  return rpc::RunTaskChild(
      flags.shared.run_task,
      [&](const v1::LeasedTask& lease, const rpc::TaskFolder& folder,
          const rpc::ChildProgress& progress) {
        return Measure(lease, folder, progress, flags);
      });
}

}  // namespace optfarm::device_agent
