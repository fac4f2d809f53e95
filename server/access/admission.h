// The way of a job from a client's request to the scheduler: checks, recipe by
// name, blobs that must be here, a look at the model.

#ifndef OPTFARM_SERVER_ACCESS_ADMISSION_H_
#define OPTFARM_SERVER_ACCESS_ADMISSION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "optfarm/v1/jobs.pb.h"
#include "server/access/access_control.h"
#include "server/access/project_limits.h"
#include "server/scheduling/scheduler.h"
#include "storage/blob_store.h"

namespace optfarm::server {

// THREADS: safe.
class Admission {
 public:
  // OWNERSHIP: all outlive it.
  Admission(Scheduler& scheduler, storage::BlobStore& blobs,
            storage::MetadataStore& store, const ProjectLimitsTable& limits)
      : scheduler_(scheduler), blobs_(blobs), store_(store), limits_(limits) {}

  // `trace_parent`, from TraceParentOf, becomes a tag where there is none and
  // room for one; not a part of the request that a retry is compared by.
  // ERRORS: those of JobService.SubmitJob. Missing blobs come as a payload of
  // the type optfarm.v1.SubmitJobFailure.
  absl::StatusOr<SubmitResult> Submit(const Caller& caller,
                                      const v1::SubmitJobRequest& request,
                                      absl::Time now,
                                      const std::string& trace_parent = "");

 private:
  absl::StatusOr<v1::JobSpec> ResolveRecipe(const v1::JobSpec& spec);
  absl::Status CheckUsage(const Caller& caller, absl::Time now);
  absl::Status CheckBlobs(const Caller& caller, const v1::JobSpec& spec,
                          absl::Time now);
  absl::Status CheckModel(const v1::JobSpec& spec);

  Scheduler& scheduler_;
  storage::BlobStore& blobs_;
  storage::MetadataStore& store_;
  const ProjectLimitsTable& limits_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_ADMISSION_H_
