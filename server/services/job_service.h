// JobService: submit, look, list, cancel, watch.

#ifndef OPTFARM_SERVER_SERVICES_JOB_SERVICE_H_
#define OPTFARM_SERVER_SERVICES_JOB_SERVICE_H_

#include "base/clock.h"
#include "optfarm/v1/jobs.grpc.pb.h"
#include "server/access/admission.h"
#include "server/access/admitted_service.h"
#include "server/access/call_door.h"
#include "server/delivery/event_hub.h"
#include "server/delivery/job_watch.h"
#include "server/delivery/webhooks.h"
#include "server/scheduling/scheduler.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// Everything by threads but WatchJob, which may stay open for days.
// THREADS: safe.
class JobServiceImpl final
    : public AdmittedService<v1::JobService::WithCallbackMethod_WatchJob<
          v1::JobService::Service>> {
 public:
  // OWNERSHIP: all outlive the service.
  JobServiceImpl(const CallDoor& door, Admission& admission, Webhooks& webhooks,
                 Scheduler& scheduler, storage::MetadataStore& store,
                 EventHub& hub, Clock& clock);

  grpc::Status SubmitJob(grpc::ServerContext* context,
                         const v1::SubmitJobRequest* request,
                         v1::SubmitJobResponse* response) override;
  grpc::Status GetJob(grpc::ServerContext* context,
                      const v1::GetJobRequest* request,
                      v1::Job* response) override;
  grpc::Status ListJobs(grpc::ServerContext* context,
                        const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context,
                         const v1::CancelJobRequest* request,
                         v1::Job* response) override;

 private:
  absl::Status Submit(Call& call, const v1::SubmitJobRequest& request,
                      const std::string& trace_parent,
                      v1::SubmitJobResponse& response);
  WatchReactor* Watch(grpc::CallbackServerContext& context);
  // ERRORS: NotFound, also for a job of a project that the caller does not see.
  absl::StatusOr<storage::StoredJob> Find(const Caller& caller,
                                          const std::string& job_id);
  // Everything known about a job.
  absl::Status FillJob(const Caller& caller, const std::string& job_id,
                       v1::Job& job);
  absl::Status List(const Caller& caller, const v1::ListJobsRequest& request,
                    v1::ListJobsResponse& response);

  const CallDoor& door_;
  Admission& admission_;
  Webhooks& webhooks_;
  Scheduler& scheduler_;
  storage::MetadataStore& store_;
  EventHub& hub_;
  Clock& clock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_JOB_SERVICE_H_
