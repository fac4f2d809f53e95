// What one project may use, so that it leaves room for the others; 0 means any
// amount. Projects that have no limits of their own have those of all.

#ifndef OPTFARM_SERVER_ACCESS_PROJECT_LIMITS_H_
#define OPTFARM_SERVER_ACCESS_PROJECT_LIMITS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

  friend bool operator==(const ProjectLimits&, const ProjectLimits&) = default;
};

// By project.
using LimitsByProject = std::map<std::string, ProjectLimits>;

// The limits that are in force. THREADS: safe.
class ProjectLimitsTable {
 public:
  ProjectLimitsTable(const ProjectLimits& of_all, LimitsByProject of_some)
      : of_all_(of_all), of_some_(std::move(of_some)) {}

  ProjectLimits Of(const std::string& project) const;
  // Projects that have limits of their own, by name.
  std::vector<std::string> WithOwn() const;

  // Puts others into force; tells of which projects the limits change, and how.
  std::map<std::string, std::string> Replace(LimitsByProject of_some);

 private:
  const ProjectLimits of_all_;
  mutable absl::Mutex mutex_;
  LimitsByProject of_some_ ABSL_GUARDED_BY(mutex_);
};

// Limits of single projects from the text of a file: a line for each project,
// its name and then KEY=VALUE with the names of the --project_ flags, blanks
// between. What a line does not name is as in `of_all`; # begins a comment.
// ERRORS: InvalidArgument with the number of the line.
absl::StatusOr<LimitsByProject> ParseProjectLimits(absl::string_view text,
                                                   const ProjectLimits& of_all);

// "max_bytes=0 max_live_jobs=2 ..."
std::string ToText(const ProjectLimits& limits);

// ResourceExhausted that says when it is worth trying again; as a detail, too.
absl::Status ExhaustedFor(absl::string_view message, absl::Duration wait);

// A bucket of tokens for each project. THREADS: safe.
class CallRate {
 public:
  // OWNERSHIP: the limits outlive it.
  explicit CallRate(const ProjectLimitsTable& limits) : limits_(limits) {}

  // Takes one call of the project. ERRORS: as ExhaustedFor.
  absl::Status Take(const std::string& project, absl::Time now);

 private:
  struct Bucket {
    double calls = 0;
    absl::Time filled;
  };

  const ProjectLimitsTable& limits_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_PROJECT_LIMITS_H_
