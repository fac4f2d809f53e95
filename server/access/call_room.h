// Room for requests while they are read, parsed and served: calls and bytes of
// memory, for all together and for each project, so that no project's requests
// take the room of the others'.

#ifndef OPTFARM_SERVER_ACCESS_CALL_ROOM_H_
#define OPTFARM_SERVER_ACCESS_CALL_ROOM_H_

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace optfarm::server {

// THREADS: safe.
class CallRoom {
 public:
  struct Options {
    // Calls of one project that threads serve at once.
    int max_calls = 64;
    // UNITS: bytes of requests, of all calls and of one project's.
    size_t max_bytes = size_t{768} << 20;
    size_t max_project_bytes = size_t{256} << 20;
    // From a call's head to the end of its request.
    absl::Duration message_time = absl::Seconds(60);
  };

  // What one call takes, given back by its end. OWNERSHIP: must not outlive its
  // room. THREADS: one at a time.
  class Stay {
   public:
    ~Stay();
    // Takes memory for the request. ERRORS: ResourceExhausted, with a hint when
    // to try again.
    absl::Status Take(size_t bytes);
    // The request is here.
    void Arrived();
    // Its request did not come in time.
    bool TooSlow() const;

   private:
    friend class CallRoom;
    struct State {
      std::string project;
      std::function<void()> cancel;
      absl::Time since;
      size_t bytes = 0;
      bool threaded = false;
      bool waiting = true;
      bool too_slow = false;
    };
    Stay(CallRoom& room, std::list<State>::iterator state)
        : room_(room), state_(state) {}
    CallRoom& room_;
    const std::list<State>::iterator state_;
  };

  explicit CallRoom(const Options& options) : options_(options) {}

  // Whether a thread is with the call from its head on.
  enum class Served { kByThread, kByReactor };

  // Lets in a call of the project whose request is still to come. `cancel` ends
  // the wait for it; it is called with the room's lock held.
  // ERRORS: ResourceExhausted, with a hint when to try again.
  absl::StatusOr<std::unique_ptr<Stay>> Enter(const std::string& project,
                                              Served served,
                                              std::function<void()> cancel,
                                              absl::Time now);

  // Room for bytes alone, of a request that somebody else waits for.
  // ERRORS: as Stay::Take.
  absl::StatusOr<std::unique_ptr<Stay>> Reserve(const std::string& project,
                                                size_t bytes);

  // Cancels calls whose requests take too long.
  void CancelSlow(absl::Time now);

 private:
  struct Used {
    int calls = 0;
    size_t bytes = 0;
  };

  std::unique_ptr<Stay> Add(Stay::State state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeLocked(Stay::State& state, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  // Whose request is still to come, and all others.
  std::list<Stay::State> waiting_ ABSL_GUARDED_BY(mutex_);
  std::list<Stay::State> stays_ ABSL_GUARDED_BY(mutex_);
  // Of projects with calls.
  std::map<std::string, Used> used_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_CALL_ROOM_H_
