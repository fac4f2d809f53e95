// Calls that stay open, by the token that let them in, so that they end when
// the token does: watches, held polls and transfers go on for minutes or days
// after the token was looked at.

#ifndef OPTFARM_SERVER_ACCESS_OPEN_CALLS_H_
#define OPTFARM_SERVER_ACCESS_OPEN_CALLS_H_

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace optfarm::server {

// THREADS: safe.
class OpenCalls {
 public:
  // One call, from when it was let in to its end. OWNERSHIP: must not outlive
  // its OpenCalls.
  class Open {
   public:
    ~Open();
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    friend class OpenCalls;
    struct State {
      std::string token_id;
      absl::Time expire_time;
      std::function<void()> cancel;
    };
    Open(OpenCalls& calls, std::list<State>::iterator state)
        : calls_(calls), state_(state) {}
    OpenCalls& calls_;
    const std::list<State>::iterator state_;
  };

  // Notes a call that the token let in. `cancel` makes it end soon; it is
  // called with a lock held, and at once when the token was revoked meanwhile.
  // With an empty token the call ends as it likes.
  std::unique_ptr<Open> Begin(const std::string& token_id,
                              absl::Time expire_time,
                              std::function<void()> cancel);

  // Ends the calls of a token, and whatever begins with it later. Ids of tokens
  // are never given again.
  void EndThoseOf(const std::string& token_id);

  // Ends the calls of tokens that have expired.
  void EndExpired(absl::Time now);

 private:
  absl::Mutex mutex_;
  std::list<Open::State> open_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_OPEN_CALLS_H_
