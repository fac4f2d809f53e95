#include "worker/worker.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "http/url_download.h"
#include "rpc/participant.h"
#include "rpc/task_child.h"
#include "worker/optimize_plan.h"

namespace optfarm::worker {
namespace {

absl::StatusOr<v1::Completion> Optimize(const v1::LeasedTask& lease,
                                        const rpc::TaskFolder& folder,
                                        const rpc::ChildProgress& progress,
                                        int threads) {
  optimize::OptimizeRequest request = OptimizeRequestFor(lease, folder);
  request.tool_version = OPTFARM_VERSION;
  request.threads = threads;
  request.is_for_devices = true;
  auto report = optimize::RunOptimize(
      request, [&](const optimize::OptimizeProgress& now) {
        progress(now.fraction, now.stage);
      });
  if (!report.ok()) {
    return absl::Status(
        report.status().code(),
        WithoutFolder(report.status().message(), lease, folder));
  }
  v1::Completion completion;
  *completion.mutable_report() = *std::move(report);
  for (std::string& text : *completion.mutable_report()->mutable_warnings()) {
    text = WithoutFolder(text, lease, folder);
  }
  return completion;
}

}  // namespace

absl::Status RunWorker(const Flags& flags) {
  rpc::ParticipantOptions options;
  options.channel = rpc::ChannelFrom(flags.shared);
  options.program = "optfarm-worker";
  options.kind = v1::SynchronizeRequest::WORKER;
  options.name = flags.shared.name;
  options.build_version = OPTFARM_VERSION;
  for (const std::string& name : optimize::BuiltInRecipeNames()) {
    OPTFARM_ASSIGN_OR_RETURN(options.builtin_recipes.emplace_back(),
                             optimize::BuiltInRecipe(name));
  }
  options.slots = flags.slots;
  options.exit_when_idle = flags.exit_when_idle;
  options.runner.work_folder = flags.shared.work_dir;
  options.runner.cache_bytes = flags.shared.cache_mb << 20;
  options.runner.plan =
      [&flags, limits = rpc::LimitsFrom(flags.shared, flags.slots)](
          const v1::LeasedTask& lease,
          const rpc::TaskFolder& folder) -> absl::StatusOr<rpc::TaskPlan> {
    rpc::TaskPlan plan;
    OPTFARM_ASSIGN_OR_RETURN(plan.inputs, OptimizeInputs(lease));
    plan.argv = {OwnProgramPath(), absl::StrCat("--run_task=", folder.path()),
                 absl::StrCat("--threads=", flags.threads)};
    plan.limits = limits;
    return plan;
  };
  options.runner.finish = FinishReport;
  options.runner.transfer.urls = http::MakeUrlSource();
  OPTFARM_RETURN_IF_ERROR(rpc::CheckSandbox(flags.shared));
  return rpc::RunParticipant(std::move(options));
}

int RunChild(const Flags& flags) {
  return rpc::RunTaskChild(
      flags.shared.run_task,
      [&](const v1::LeasedTask& lease, const rpc::TaskFolder& folder,
          const rpc::ChildProgress& progress) {
        return Optimize(lease, folder, progress, flags.threads);
      },
      rpc::ChildSandbox::kFull);
}

}  // namespace optfarm::worker
