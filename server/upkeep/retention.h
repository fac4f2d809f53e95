// What the server lets go of as it grows old, by default nothing.

#ifndef OPTFARM_SERVER_UPKEEP_RETENTION_H_
#define OPTFARM_SERVER_UPKEEP_RETENTION_H_

#include "absl/time/time.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// How long each kind is kept.
struct RetentionOptions {
  // Run by run times and profiles of measurements.
  absl::Duration samples = absl::InfiniteDuration();
  // What the tasks of ended jobs printed.
  absl::Duration logs = absl::InfiniteDuration();
  // Ended jobs, with all that was measured in them.
  absl::Duration jobs = absl::InfiniteDuration();
  // Entries of the audit log; a day at least.
  absl::Duration audit = absl::Hours(24 * 365);
};

// Lets a bounded part go. Returns true when there is more; call again soon.
// Trouble is logged and tried again another time.
bool LetGo(storage::MetadataStore& store, const RetentionOptions& options,
           absl::Time now);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_RETENTION_H_
