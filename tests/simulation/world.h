// Time and order of a simulation: events happen one after the other, at times
// that the seed decides. Everything that happens is counted, folded into one
// number, and the last of it is kept for whoever reads a failure.

#ifndef OPTFARM_TESTS_SIMULATION_WORLD_H_
#define OPTFARM_TESTS_SIMULATION_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/simulation/random.h"

namespace optfarm::simulation {

// THREADS: one thread at a time.
class World {
 public:
  // Keeps so many notes.
  World(uint64_t seed, size_t notes);

  absl::Time now() const { return now_; }
  Random& random() { return random_; }

  // Does it after so much time; what is due at one time, in this order.
  void After(absl::Duration wait, std::function<void()> action);
  // Does what is due next. False when nothing is.
  bool Step();
  int64_t steps() const { return steps_; }

  // Notes that something happened.
  void Note(absl::string_view what, absl::string_view who = "",
            int64_t number = 0);
  // Of all that was noted so far.
  uint64_t digest() const { return digest_; }
  // The last of it, one line each.
  std::string LastNotes() const;

  // What must hold does not. The first one counts.
  void Fail(std::string message);
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

 private:
  struct Event {
    absl::Time time;
    int64_t number;
    std::function<void()> action;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  struct NoteLine {
    int64_t step = 0;
    absl::Time time;
    std::string what;
    std::string who;
    int64_t number = 0;
  };

  absl::Time now_;
  Random random_;
  std::priority_queue<Event> events_;
  int64_t event_count_ = 0;
  int64_t steps_ = 0;
  uint64_t digest_ = 0xcbf29ce484222325u;
  // A ring.
  std::vector<NoteLine> notes_;
  size_t next_note_ = 0;
  std::string failure_;
};

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_WORLD_H_
