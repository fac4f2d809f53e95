// What one project may use, so that it leaves room for the others. Every
// project has the same limits; 0 means none.

#ifndef OPTFARM_SERVER_PROJECT_LIMITS_H_
#define OPTFARM_SERVER_PROJECT_LIMITS_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace optfarm::server {

struct ProjectLimits {
  // UNITS: bytes of the files that it brought.
  int64_t max_bytes = 0;
  // Jobs that wait or run.
  int max_live_jobs = 0;
  // Jobs submitted within 24 hours.
  int max_jobs_a_day = 0;
  // Calls of all its tokens together: so many a second for long, and so many at
  // once after a pause.
  double calls_per_second = 0;
  int call_burst = 100;
};

// ResourceExhausted that says when it is worth trying again; as a detail, too.
absl::Status ExhaustedFor(absl::string_view message, absl::Duration wait);

// A bucket of tokens for each project. THREADS: safe.
class CallRate {
 public:
  explicit CallRate(const ProjectLimits& limits) : limits_(limits) {}

  // Takes one call of the project. ERRORS: as ExhaustedFor.
  absl::Status Take(const std::string& project, absl::Time now);

 private:
  struct Bucket {
    double calls = 0;
    absl::Time filled;
  };

  const ProjectLimits limits_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_PROJECT_LIMITS_H_
