// What becomes of a finished attempt that a worker or an agent reports.

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/conventions/log_text.h"
#include "server/scheduling/completion_check.h"
#include "server/scheduling/job_spec_check.h"
#include "server/scheduling/scheduler.h"
#include "server/scheduling/scheduler_plan.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::BlobId;

constexpr size_t kMaxFailureBytes = 4000;

// The blobs that are not here; a blob with another size than claimed is an
// error.
absl::StatusOr<std::vector<BlobId>> Missing(storage::BlobStore& blobs,
                                            const std::vector<BlobId>& wanted,
                                            absl::Time now) {
  std::vector<BlobId> missing;
  for (const BlobId& id : wanted) {
    OPTFARM_ASSIGN_OR_RETURN(const bool present, blobs.Contains(id, now));
    if (!present) missing.push_back(id);
  }
  return missing;
}

v1::Failure Shortened(const v1::Failure& failure) {
  v1::Failure result = failure;
  result.set_message(std::string(CutText(failure.message(), kMaxFailureBytes)));
  result.set_code(std::string(CutText(failure.code(), 64)));
  return result;
}

}  // namespace

void Scheduler::TakeCompletion(const v1::SynchronizeRequest& request,
                               const v1::HeldTask& held, size_t index,
                               JobChange& change, Plan& plan,
                               v1::TaskVerdict& verdict) {
  const v1::Completion& completion = held.completion();
  absl::StatusOr<std::vector<BlobId>> missing = CheckCompletion(
      completion, change.task(index).record, *change.job().spec);
  if (missing.ok()) missing = Missing(blobs_, *missing, plan.now);
  if (!missing.ok()) {
    Refuse(verdict, v1::TaskVerdict::COMPLETION_REFUSED,
           missing.status().message());
    verdict.clear_lease_deadline();
    verdict.clear_lease_remaining();
    change.FailAttempt(
        index,
        MakeFailure(v1::Failure::INTERNAL, "INTERNAL",
                    absl::StrCat(request.name(),
                                 " sent a result that cannot be taken: ",
                                 missing.status().message())),
        "failed");
    return;
  }
  if (!missing->empty()) {
    Refuse(verdict, v1::TaskVerdict::COMPLETION_REFUSED,
           absl::StrCat(missing->size(), " blobs are missing; upload them"));
    for (const BlobId& id : *missing) {
      *verdict.add_missing_blobs() = ToProto(id);
    }
    return;
  }
  verdict.Clear();
  verdict.set_task_id(held.task_id());
  verdict.set_attempt(held.attempt());
  verdict.set_verdict(v1::TaskVerdict::COMPLETION_ACCEPTED);
  change.MarkAccepted(index);
  change.KeepArtifacts(index, completion.artifacts());
  NoteDevice(completion, change.task(index).record, plan);
  switch (completion.outcome_case()) {
    case v1::Completion::kReport:
      change.CompleteOptimize(index, completion.report());
      RememberAction(request, change, plan);
      break;
    case v1::Completion::kBenchmark:
      change.CompleteBenchmark(index, completion.benchmark());
      break;
    case v1::Completion::kFailure:
      change.FailAttempt(index, Shortened(completion.failure()), "failed");
      break;
    default:
      change.HandBack(
          index, CutText(completion.released().reason(), kMaxFailureBytes));
      break;
  }
}

// What a completion says about the device it comes from. A user's error says
// that the device worked.
void Scheduler::NoteDevice(const v1::Completion& completion,
                           const storage::TaskRecord& task, Plan& plan) {
  if (task.kind != v1::BENCHMARK || completion.has_released()) return;
  const bool failed = completion.has_failure() &&
                      completion.failure().kind() == v1::Failure::INTERNAL;
  fleet_.NoteOutcome(
      task.device, !failed,
      failed ? CutText(completion.failure().message(), kMaxFailureBytes) : "",
      plan.now, plan.batch, plan.fleet);
}

void Scheduler::RememberAction(const v1::SynchronizeRequest& request,
                               const JobChange& change, Plan& plan) {
  storage::ActionRecord& action = plan.batch.actions.emplace_back();
  action.action_digest =
      OfProject(change.job().job.project, ActionDigest(*change.job().spec));
  action.tool_version = request.build_version();
  action.job_id = change.job().job.job_id;
  action.create_time = plan.now;
}

}  // namespace optfarm::server
