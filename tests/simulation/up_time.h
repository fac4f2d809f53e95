// When the simulated server was there, as the simulation knows it: what its
// deadlines are checked against.

#ifndef OPTFARM_TESTS_SIMULATION_UP_TIME_H_
#define OPTFARM_TESTS_SIMULATION_UP_TIME_H_

#include <algorithm>
#include <vector>

#include "absl/time/time.h"

namespace optfarm::simulation {

// THREADS: one thread at a time.
class UpTime {
 public:
  // The server was not there, or could not keep anything. `forgiven`: no
  // deadline may count it; otherwise deadlines may or may not.
  void NoteGap(absl::Time from, absl::Time to, bool forgiven) {
    gaps_.push_back({from, to, forgiven});
  }

  // No deadline may count more than this of the time between two.
  absl::Duration AtMost(absl::Time from, absl::Time to) const {
    absl::Duration time = to - from;
    for (const Gap& gap : gaps_) {
      if (gap.forgiven) time -= Overlap(gap, from, to);
    }
    return time;
  }
  // Every deadline has to count this much of it.
  absl::Duration AtLeast(absl::Time from, absl::Time to) const {
    absl::Duration time = to - from;
    for (const Gap& gap : gaps_) {
      if (gap.to < from || gap.from > to) continue;
      // Nobody knows exactly when it began and ended.
      time -= Overlap(gap, from, to) + kUnknown;
    }
    return time;
  }

 private:
  static constexpr absl::Duration kUnknown = absl::Seconds(45);

  struct Gap {
    absl::Time from;
    absl::Time to;
    bool forgiven;
  };

  static absl::Duration Overlap(const Gap& gap, absl::Time from,
                                absl::Time to) {
    return std::max(absl::ZeroDuration(),
                    std::min(gap.to, to) - std::max(gap.from, from));
  }

  std::vector<Gap> gaps_;
};

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_UP_TIME_H_
