#include "device_agent/agent.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/stop_signal.h"
#include "base/subprocess.h"
#include "device_agent/benchmark_plan.h"
#include "device_agent/device_driver.h"
#include "device_agent/url_source.h"
#include "engine/benchmark/affinity.h"
#include "engine/benchmark/environment.h"
#include "rpc/participant.h"

namespace optfarm::device_agent {
namespace {

absl::StatusOr<std::unique_ptr<DeviceDriver>> MakeDriver(
    const Flags& flags, const std::vector<v1::EngineInfo>& engines = {}) {
  if (flags.driver == "adb") return MakeAdbDriver(flags);
  return MakeLocalDriver(flags, engines);
}

// What an engine cannot do is found out before a benchmark trips over it.
absl::StatusOr<std::vector<v1::EngineInfo>> CheckEngines(const Flags& flags) {
  if (!flags.engines.empty() && flags.driver != "local") {
    return absl::InvalidArgumentError(
        "engines run on the agent's own machine, not on phones; leave one of "
        "--engine and --driver out");
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::EngineInfo> engines,
                           DescribeEngines(flags));
  for (const v1::EngineInfo& engine : engines) {
    LogInfo("engine ", engine.name(), " ", engine.version());
  }
  return engines;
}

// What the flags say of CPUs, before a benchmark trips over it. A phone's are
// not known yet.
absl::Status CheckCpus(const Flags& flags) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int> cpus,
                           benchmark::ParseCpus(flags.cpus));
  if (flags.driver != "local") return absl::OkStatus();
  return benchmark::ScopedCpus(cpus).status();
}

// What starts this program again.
std::vector<std::string> OwnCommand(const Flags& flags) {
  if (flags.launcher.empty()) return {OwnProgramPath()};
  // In the launcher the path would name the launcher.
  std::error_code error;
  return {flags.launcher,
          std::filesystem::read_symlink(OwnProgramPath(), error).string()};
}

std::vector<std::string> ChildCommand(const Flags& flags,
                                      const rpc::TaskFolder& folder,
                                      const v1::BenchmarkTask& task,
                                      DeviceDriver* driver) {
  const std::string& device = task.device();
  std::vector<std::string> argv = OwnCommand(flags);
  for (std::string& flag : std::vector<std::string>{
           absl::StrCat("--run_task=", folder.path()),
           absl::StrCat("--name=", device),
           absl::StrCat("--cool_down_seconds=", flags.cool_down_seconds),
           absl::StrCat("--max_celsius=", flags.quiet.max_celsius),
           absl::StrCat("--max_load=", flags.quiet.max_load),
           absl::StrCat("--min_battery=", flags.quiet.min_battery_percent)}) {
    argv.push_back(std::move(flag));
  }
  if (flags.no_sandbox) argv.push_back("--no_sandbox");
  if (!flags.cpus.empty()) argv.push_back(absl::StrCat("--cpus=", flags.cpus));
  if (!flags.threads.empty()) {
    argv.push_back(
        absl::StrCat("--threads=", absl::StrJoin(flags.threads, ",")));
  }
  for (const std::string& engine : flags.engines) {
    if (absl::c_linear_search(task.spec().engines(),
                              engine.substr(0, engine.find(':')))) {
      argv.push_back(absl::StrCat("--engine=", engine));
    }
  }
  if (!flags.engines.empty() && !flags.launcher.empty()) {
    argv.push_back(absl::StrCat("--launcher=", flags.launcher));
  }
  for (std::string& flag : driver->ChildFlags(device)) {
    argv.push_back(std::move(flag));
  }
  return argv;
}

}  // namespace

absl::Status RunAgent(const Flags& flags) {
  // Before there are other threads, and a driver may have some.
  HoldStopSignals();
  OPTFARM_RETURN_IF_ERROR(Annotate(CheckCpus(flags), "--cpus"));
  absl::StatusOr<std::vector<v1::EngineInfo>> engines = CheckEngines(flags);
  if (!engines.ok()) return Annotate(engines.status(), "--engine");
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceDriver> driver,
                           MakeDriver(flags, *engines));
  rpc::ParticipantOptions options;
  options.channel = rpc::ChannelFrom(flags.shared);
  options.program = "optfarm-agent";
  options.kind = v1::SynchronizeRequest::AGENT;
  options.name = flags.shared.name;
  options.build_version = OPTFARM_VERSION;
  options.devices = [&driver](const std::set<std::string>& busy) {
    return driver->Devices(busy);
  };
  options.take_waker = [&driver](std::function<void()> wake) {
    driver->SetWaker(std::move(wake));
  };
  options.runner.work_folder = flags.shared.work_dir;
  options.runner.cache_bytes = flags.shared.cache_mb << 20;
  options.runner.transfer.urls = MakeAgentUrlSource();
  options.runner.plan =
      [&flags, &driver, limits = rpc::LimitsFrom(flags.shared, 1)](
          const v1::LeasedTask& lease,
          const rpc::TaskFolder& folder) -> absl::StatusOr<rpc::TaskPlan> {
    const std::string& device = lease.benchmark().device();
    rpc::TaskPlan plan;
    OPTFARM_ASSIGN_OR_RETURN(
        plan.inputs,
        BenchmarkInputs(lease,
                        flags.driver == "local" ? flags.shared.name : device,
                        EngineNamesOf(flags)));
    plan.argv = ChildCommand(flags, folder, lease.benchmark(), driver.get());
    plan.limits = limits;
    plan.alone = SandboxFor(flags) == rpc::ChildSandbox::kFull;
    return plan;
  };
  if (SandboxFor(flags) == rpc::ChildSandbox::kFull) {
    OPTFARM_RETURN_IF_ERROR(rpc::CheckSandbox(flags.shared));
  } else if (flags.shared.sandbox == "require") {
    return absl::FailedPreconditionError(
        "--sandbox=require: benchmarks of phones, and those with --no_sandbox, "
        "run without a sandbox; no work is taken");
  }
  options.runner.finish = [](const v1::LeasedTask& lease,
                             const std::vector<v1::Artifact>&,
                             v1::Completion* completion) {
    return CheckMeasured(lease.benchmark().device(), *completion);
  };
  return rpc::RunParticipant(std::move(options));
}

int RunChild(const Flags& flags) {
  // While what it needs may still be opened, and started.
  benchmark::ResetPeakResident();
  const DeviceEngines engines =
      DeviceEngines::Start(flags, rpc::TaskFolder(flags.shared.run_task));
  return rpc::RunTaskChild(
      flags.shared.run_task,
      [&](const v1::LeasedTask& lease, const rpc::TaskFolder& folder,
          const rpc::ChildProgress& progress)
          -> absl::StatusOr<v1::Completion> {
        OPTFARM_ASSIGN_OR_RETURN(const auto driver, MakeDriver(flags));
        return driver->Measure(lease, folder, engines, progress);
      },
      SandboxFor(flags));
}

}  // namespace optfarm::device_agent
