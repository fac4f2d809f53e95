#include "server/services/job_service.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/access/call_origin.h"
#include "server/delivery/job_view.h"
#include "server/delivery/job_watch.h"
#include "server/services/list_query.h"

namespace optfarm::server {
namespace {

constexpr int kJobsAPage = 50;

constexpr char kWatchJob[] = "optfarm.v1.JobService.WatchJob";

}  // namespace

JobServiceImpl::JobServiceImpl(const CallDoor& door, Admission& admission,
                               Webhooks& webhooks, Scheduler& scheduler,
                               storage::MetadataStore& store, EventHub& hub,
                               Clock& clock)
    : door_(door),
      admission_(admission),
      webhooks_(webhooks),
      scheduler_(scheduler),
      store_(store),
      hub_(hub),
      clock_(clock) {
  AdmitUnary(door, "optfarm.v1.JobService.SubmitJob", &Service::SubmitJob);
  AdmitUnary(door, "optfarm.v1.JobService.GetJob", &Service::GetJob);
  AdmitUnary(door, "optfarm.v1.JobService.ListJobs", &Service::ListJobs);
  AdmitUnary(door, "optfarm.v1.JobService.CancelJob", &Service::CancelJob);
  AdmitReactor<v1::WatchJobRequest, v1::JobEvent>(
      kWatchJob,
      [this](grpc::CallbackServerContext* context) { return Watch(*context); });
}

grpc::Status JobServiceImpl::SubmitJob(grpc::ServerContext* context,
                                       const v1::SubmitJobRequest* request,
                                       v1::SubmitJobResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.JobService.SubmitJob", [&](Call& call) {
        return Submit(call, *request, TraceParentOf(*context), *response);
      });
}

absl::Status JobServiceImpl::Submit(Call& call,
                                    const v1::SubmitJobRequest& request,
                                    const std::string& trace_parent,
                                    v1::SubmitJobResponse& response) {
  const std::string& webhook = request.webhook();
  if (!webhook.empty()) OPTFARM_RETURN_IF_ERROR(webhooks_.Check(webhook));
  OPTFARM_ASSIGN_OR_RETURN(
      const SubmitResult result,
      admission_.Submit(call.caller, request, clock_.Now(), trace_parent));
  call.subject = result.job_id;
  // Before the answer: who was told that the job is taken will be told that it
  // ended. A retry, too, finds it noted.
  if (!webhook.empty()) {
    OPTFARM_RETURN_IF_ERROR(webhooks_.Expect(result.job_id, webhook));
  }
  response.set_existed(result.existed);
  return FillJob(call.caller, result.job_id, *response.mutable_job());
}

grpc::Status JobServiceImpl::GetJob(grpc::ServerContext* context,
                                    const v1::GetJobRequest* request,
                                    v1::Job* response) {
  return door_.Serve(*context, "optfarm.v1.JobService.GetJob", [&](Call& call) {
    return FillJob(call.caller, request->job_id(), *response);
  });
}

grpc::Status JobServiceImpl::CancelJob(grpc::ServerContext* context,
                                       const v1::CancelJobRequest* request,
                                       v1::Job* response) {
  return door_.Serve(
      *context, "optfarm.v1.JobService.CancelJob",
      [&](Call& call) -> absl::Status {
        call.subject = request->job_id();
        OPTFARM_RETURN_IF_ERROR(Find(call.caller, request->job_id()).status());
        OPTFARM_RETURN_IF_ERROR(scheduler_.Cancel(
            request->job_id(), request->reason(), clock_.Now()));
        return FillJob(call.caller, request->job_id(), *response);
      });
}

absl::StatusOr<storage::StoredJob> JobServiceImpl::Find(
    const Caller& caller, const std::string& job_id) {
  OPTFARM_ASSIGN_OR_RETURN(storage::StoredJob stored, store_.GetJob(job_id));
  if (caller.Sees(stored.job.project)) return stored;
  return storage::NoSuchJob(job_id);
}

absl::Status JobServiceImpl::FillJob(const Caller& caller,
                                     const std::string& job_id, v1::Job& job) {
  OPTFARM_ASSIGN_OR_RETURN(storage::StoredJob stored, Find(caller, job_id));
  scheduler_.RefreshLeases(stored);
  scheduler_.ExplainWaits(stored, clock_.Now());
  job = ToProto(stored);
  return AddOutcome(store_, job);
}

grpc::Status JobServiceImpl::ListJobs(grpc::ServerContext* context,
                                      const v1::ListJobsRequest* request,
                                      v1::ListJobsResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.JobService.ListJobs",
      [&](Call& call) { return List(call.caller, *request, *response); });
}

absl::Status JobServiceImpl::List(const Caller& caller,
                                  const v1::ListJobsRequest& request,
                                  v1::ListJobsResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(storage::JobFilter filter,
                           ParseJobFilter(request.filter()));
  filter.project = caller.OnlyProject();
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::PageRequest page,
      ParsePage(request.page_size(), kJobsAPage, request.page_token()));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<storage::StoredJob> jobs,
                           store_.ListJobs(filter, page));
  for (storage::StoredJob& job : jobs) {
    scheduler_.RefreshLeases(job);
    *response.add_jobs() = ToProto(job);
  }
  if (static_cast<int>(jobs.size()) == page.limit) {
    response.set_next_page_token(PageToken(jobs.back().job.number));
  }
  return absl::OkStatus();
}

WatchReactor* JobServiceImpl::Watch(grpc::CallbackServerContext& context) {
  return StartJobWatch(
      door_.Enter(context, kWatchJob, CallRoom::Served::kByReactor),
      [this, &context](
          const v1::WatchJobRequest& request) -> absl::StatusOr<AdmittedWatch> {
        OPTFARM_ASSIGN_OR_RETURN(const Caller caller,
                                 door_.Admit(context, kWatchJob));
        OPTFARM_RETURN_IF_ERROR(Find(caller, request.job_id()).status());
        return AdmittedWatch{caller.Room(), door_.HoldOpen(context, caller)};
      },
      hub_, store_);
}

}  // namespace optfarm::server
