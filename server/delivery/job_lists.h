// Jobs as lists show them, without what is large, and with their verdicts.

#ifndef OPTFARM_SERVER_DELIVERY_JOB_LISTS_H_
#define OPTFARM_SERVER_DELIVERY_JOB_LISTS_H_

#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "optfarm/v1/jobs.pb.h"
#include "server/scheduling/scheduler.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// THREADS: safe. OWNERSHIP: both outlive it.
class JobLists {
 public:
  JobLists(Scheduler& scheduler, storage::MetadataStore& store)
      : scheduler_(scheduler), store_(store) {}

  // One job as in lists, with its verdicts. ERRORS: NotFound; those of the
  // store.
  absl::StatusOr<v1::Job> Read(const std::string& job_id);

 private:
  using Verdicts = google::protobuf::RepeatedPtrField<v1::ShippingVerdict>;

  // A verdict takes a report and all measurements to tell, and never changes
  // once the job has ended: it is told once.
  absl::Status AddVerdicts(v1::Job& job);
  void Remember(const std::string& job_id, Verdicts verdicts);

  Scheduler& scheduler_;
  storage::MetadataStore& store_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Verdicts>> known_
      ABSL_GUARDED_BY(mutex_);
  // Those that are known, oldest first, and how many verdicts they have.
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_JOB_LISTS_H_
