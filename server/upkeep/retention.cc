#include "server/upkeep/retention.h"

#include "base/log.h"

namespace optfarm::server {

bool LetGo(storage::MetadataStore& store, const RetentionOptions& options,
           absl::Time now) {
  storage::RetentionPolicy policy;
  // Never is before everything.
  policy.samples_before = now - options.samples;
  policy.logs_before = now - options.logs;
  policy.jobs_before = now - options.jobs;
  const absl::StatusOr<storage::RetentionCounts> counts = store.Prune(policy);
  if (!counts.ok()) {
    LogWarning("letting go of old results: ", counts.status().message());
    return false;
  }
  if (counts->jobs + counts->logs + counts->samples > 0) {
    LogInfo("let go of ", counts->jobs, " jobs, ", counts->logs,
            " log entries and the samples of ", counts->samples, " results");
  }
  return counts->more;
}

}  // namespace optfarm::server
