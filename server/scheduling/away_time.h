// Time that no deadline counts: the server was not there, the machine slept, or
// the wall clock was set forward. Workers could not report and nobody could
// take work meanwhile.

#ifndef OPTFARM_SERVER_SCHEDULING_AWAY_TIME_H_
#define OPTFARM_SERVER_SCHEDULING_AWAY_TIME_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace optfarm::server {

// THREADS: one thread at a time.
class AwayTime {
 public:
  // Nothing counts between the two. Also notes that the server is here at `to`.
  // An end before the beginning is a clock that was set back: what was noted
  // of the time after `to` is from before it.
  void Note(absl::Time from, absl::Time to);
  // The server is here.
  void NoteHere(absl::Time now) { last_here_ = now; }
  absl::Time last_here() const { return last_here_; }

  // How much of the time after `begin` does not count; of a gap that had begun
  // by then, its rest.
  absl::Duration Since(absl::Time begin) const;

  // One line for the last sign of life and one for each gap, and back. A gap
  // that a clock set back has shortened says until when.
  // ERRORS: InvalidArgument.
  std::string ToText() const;
  static absl::StatusOr<AwayTime> FromText(absl::string_view text);

 private:
  struct Gap {
    absl::Time from;
    absl::Duration length;
    // What begins from here on is not older than its end.
    absl::Time until;
  };

  // Oldest first; the longest ago are forgotten.
  std::vector<Gap> gaps_;
  absl::Time last_here_ = absl::InfinitePast();
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_AWAY_TIME_H_
