// When something about each job, or each device, is due, so that a tick looks
// at those alone whose time has come.

#ifndef OPTFARM_SERVER_SCHEDULING_DUE_TIMES_H_
#define OPTFARM_SERVER_SCHEDULING_DUE_TIMES_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace optfarm::server {

// THREADS: one thread at a time.
class DueTimes {
 public:
  // Replaces the time that it had.
  void Set(const std::string& id, absl::Time due);
  void Erase(const std::string& id);

  // Those whose time is `now` or was before it, the longest due first.
  std::vector<std::string> PassedAt(absl::Time now) const;
  // The first time after `now`; absl::InfiniteFuture() when there is none.
  absl::Time FirstAfter(absl::Time now) const;

 private:
  std::set<std::pair<absl::Time, std::string>> order_;
  absl::flat_hash_map<std::string, absl::Time> times_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_DUE_TIMES_H_
