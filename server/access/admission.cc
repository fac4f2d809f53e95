#include "server/access/admission.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "rpc/trace_parent.h"
#include "server/scheduling/job_spec_check.h"

namespace optfarm::server {
namespace {

constexpr int64_t kModelPeekBytes = 256;
// What fits into the headers of an answer.
constexpr int kMaxListedBlobs = 40;
// As many as CheckJobSpec takes.
constexpr int kMaxTags = 16;
constexpr char kFailureType[] =
    "type.googleapis.com/optfarm.v1.SubmitJobFailure";

void AddTraceParent(const std::string& trace_parent, v1::JobSpec& spec) {
  const bool has_one = absl::c_any_of(spec.tags(), [](const std::string& tag) {
    return absl::StartsWith(tag, rpc::kTraceParentTag);
  });
  if (trace_parent.empty() || has_one || spec.tags_size() >= kMaxTags) return;
  spec.add_tags(absl::StrCat(rpc::kTraceParentTag, trace_parent));
}

}  // namespace

absl::StatusOr<SubmitResult> Admission::Submit(
    const Caller& caller, const v1::SubmitJobRequest& request, absl::Time now,
    const std::string& trace_parent) {
  OPTFARM_RETURN_IF_ERROR(CheckClientRequestId(request.client_request_id()));
  Submission submission;
  submission.project = caller.project;
  submission.client_request_id =
      OfProject(caller.project, request.client_request_id());
  submission.max_live_jobs =
      caller.OfFarm() ? 0 : limits_.Of(caller.project).max_live_jobs;
  submission.spec_digest = Sha256Hex(request.spec().SerializeAsString());
  // First of all: a retry is answered even when its blobs are gone by now.
  OPTFARM_ASSIGN_OR_RETURN(
      const std::optional<SubmitResult> known,
      scheduler_.FindSubmitted(submission.client_request_id,
                               submission.spec_digest));
  if (known.has_value()) return *known;
  OPTFARM_RETURN_IF_ERROR(CheckUsage(caller, now));
  OPTFARM_ASSIGN_OR_RETURN(v1::JobSpec spec, ResolveRecipe(request.spec()));
  AddTraceParent(trace_parent, spec);
  OPTFARM_ASSIGN_OR_RETURN(submission.spec, CheckJobSpec(spec));
  OPTFARM_RETURN_IF_ERROR(CheckBlobs(caller, submission.spec, now));
  OPTFARM_RETURN_IF_ERROR(CheckModel(submission.spec));
  submission.action_digest =
      OfProject(caller.project, ActionDigest(submission.spec));
  return scheduler_.Submit(submission, now);
}

absl::Status Admission::CheckUsage(const Caller& caller, absl::Time now) {
  const ProjectLimits limits = limits_.Of(caller.project);
  const int most = limits.max_jobs_a_day;
  if (caller.OfFarm() || (most == 0 && limits.max_bytes == 0)) {
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::ProjectUsage usage,
      store_.GetProjectUsage(caller.project, now - absl::Hours(24)));
  // What jobs make is always kept, so that a project may have come to more.
  if (limits.max_bytes > 0 && usage.bytes > limits.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the files of the project ", caller.project, " have ", usage.bytes,
        " bytes and may have ", limits.max_bytes,
        "; remove some (optctl blobs list, optctl blobs rm), or ask the "
        "operator for a higher max_bytes of the project"));
  }
  if (most == 0 || usage.jobs < most) return absl::OkStatus();
  return ExhaustedFor(
      absl::StrCat("the project ", caller.project, " has submitted ",
                   usage.jobs, " jobs within 24 hours and may submit ", most),
      usage.oldest_job + absl::Hours(24) - now);
}

absl::StatusOr<v1::JobSpec> Admission::ResolveRecipe(const v1::JobSpec& spec) {
  switch (spec.recipe_source_case()) {
    case v1::JobSpec::kRecipe:
      return spec;
    case v1::JobSpec::kRecipeName: {
      OPTFARM_ASSIGN_OR_RETURN(v1::Recipe recipe,
                               scheduler_.FindRecipe(spec.recipe_name()));
      v1::JobSpec resolved = spec;
      *resolved.mutable_recipe() = std::move(recipe);
      return resolved;
    }
    case v1::JobSpec::RECIPE_SOURCE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "job spec: recipe is missing; give a recipe or the name of one");
}

absl::Status Admission::CheckBlobs(const Caller& caller,
                                   const v1::JobSpec& spec, absl::Time now) {
  v1::SubmitJobFailure failure;
  int missing = 0;
  for (const storage::BlobId& id : BlobsOf(spec)) {
    bool present = true;
    if (!caller.OfFarm()) {
      OPTFARM_ASSIGN_OR_RETURN(
          present, store_.ProjectHasBlob(caller.project, id.sha256));
    }
    if (present) {
      OPTFARM_ASSIGN_OR_RETURN(present, blobs_.Contains(id, now));
    }
    if (present) continue;
    if (++missing <= kMaxListedBlobs) {
      *failure.add_missing_blobs() = storage::ToProto(id);
    }
  }
  if (missing == 0) return absl::OkStatus();
  absl::Status status = absl::FailedPreconditionError(absl::StrCat(
      missing, " of the job's blobs are not on the server, the first is ",
      failure.missing_blobs(0).sha256(),
      "; upload what FindMissing lists and submit again"));
  status.SetPayload(kFailureType, absl::Cord(failure.SerializeAsString()));
  return status;
}

absl::Status Admission::CheckModel(const v1::JobSpec& spec) {
  OPTFARM_ASSIGN_OR_RETURN(const auto reader,
                           blobs_.OpenBlob(spec.model().digest().sha256()));
  OPTFARM_ASSIGN_OR_RETURN(const std::string first_bytes,
                           reader->Read(0, kModelPeekBytes));
  return CheckLooksLikeGraph(first_bytes);
}

}  // namespace optfarm::server
