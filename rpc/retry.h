// Trying again, with pauses that grow and are jittered so that many clients
// of one server that comes back do not all call at the same moment.

#ifndef OPTFARM_RPC_RETRY_H_
#define OPTFARM_RPC_RETRY_H_

#include <cstdint>
#include <functional>
#include <random>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace optfarm::rpc {

struct BackoffOptions {
  absl::Duration first = absl::Milliseconds(200);
  absl::Duration longest = absl::Seconds(20);
  double factor = 1.8;
  // Each pause is drawn evenly from [1 - jitter, 1] times its nominal length.
  double jitter = 0.4;
};

// THREADS: one object belongs to one thread at a time.
class Backoff {
 public:
  // One seed, one sequence of pauses.
  Backoff(const BackoffOptions& options, uint64_t seed)
      : options_(options), random_(seed), nominal_(options.first) {}

  // The next pause; each is nominally `factor` times the last, up to
  // `longest`.
  absl::Duration Next();
  // Starts again with the shortest, after a success.
  void Reset() { nominal_ = options_.first; }

 private:
  BackoffOptions options_;
  std::mt19937_64 random_;
  absl::Duration nominal_;
};

// True for errors that the same call may not meet again: Unavailable,
// DeadlineExceeded, Aborted, and Cancelled, which is what a server that shuts
// down answers. ResourceExhausted is not among them: a full disk stays full.
bool IsTransient(const absl::Status& status);

struct RetryOptions {
  BackoffOptions backoff;
  // UNITS: calls, the first included.
  int max_attempts = 8;
  // No new attempt begins when this much time has passed since the first.
  absl::Duration give_up_after = absl::Minutes(10);
  // Errors that are tried again although they are not transient; may be empty.
  std::function<bool(const absl::Status&)> also;
  // Asked before each pause and attempt; true ends the retries with Cancelled.
  std::function<bool()> cancelled;
  // OWNERSHIP: must outlive the call.
  Clock* clock = RealClock();
  // Seed of the jitter; 0: different in every call.
  uint64_t seed = 0;
};

// What one attempt came to.
struct Attempt {
  absl::Status status;
  // Something was achieved that the next attempt will not have to do again:
  // the count of attempts and the pauses start anew.
  bool progress = false;
};

// Calls `attempt` until its status is OK or not transient, or a limit of
// `options` is reached; returns the last status.
absl::Status Retry(const RetryOptions& options,
                   absl::FunctionRef<Attempt()> attempt);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_RETRY_H_
