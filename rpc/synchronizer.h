// The loop behind WorkService.Synchronize, the same for workers and agents:
// says who we are and what we hold, hands new leases out, and keeps trying
// while the server is away. Start at Run.

#ifndef OPTFARM_RPC_SYNCHRONIZER_H_
#define OPTFARM_RPC_SYNCHRONIZER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "optfarm/v1/work.grpc.pb.h"
#include "rpc/held_tasks.h"
#include "rpc/retry.h"

namespace optfarm::rpc {

using WorkStub = v1::WorkService::StubInterface;

struct SynchronizerOptions {
  // Who calls: participant_id, name, kind and build_version are sent with
  // every call, builtin_recipes until the first answer and after a break.
  v1::SynchronizeRequest identity;
  // How many more tasks a worker wants now; null: none.
  std::function<int()> free_slots;
  // An agent's devices as they are now; null: none.
  std::function<std::vector<v1::DeviceStatus>()> devices;
  // Starts the work on a new lease; must not block.
  std::function<void(std::shared_ptr<HeldTask>)> on_lease;
  // Called once, after the first answer.
  std::function<void()> on_ready;
  // Called before each call, also while the server does not answer: at least
  // once in idle_poll and a few seconds.
  std::function<void()> on_cycle;
  // How long the server may hold a call while nothing is held here, and while
  // something is: progress and log go out that often.
  absl::Duration idle_poll = absl::Seconds(30);
  absl::Duration held_poll = absl::Seconds(1);
  // Ends the loop as Shutdown does once nothing was held for so long, while the
  // server answered.
  absl::Duration exit_when_idle = absl::InfiniteDuration();
  // Longest time for held tasks to be given back after Shutdown.
  absl::Duration shutdown_grace = absl::Seconds(10);
  // Pauses while the server does not answer.
  BackoffOptions backoff = {absl::Milliseconds(200), absl::Seconds(10)};
  // What pauses and the grace are measured with; deadlines of calls are the
  // machine's time, as gRPC has no other. OWNERSHIP: borrowed.
  Clock* clock = RealClock();
};

// Returns a new participant id: 32 random hexadecimal digits.
std::string NewParticipantId();

// Returns `name` with everything that a participant's or a device's name may
// not hold replaced by '-', cut at 64 characters.
std::string CleanName(absl::string_view name);

// THREADS: Run belongs to one thread; the other methods may be called from any.
class Synchronizer {
 public:
  // OWNERSHIP: `stub` must outlive the object.
  Synchronizer(WorkStub* stub, SynchronizerOptions options);

  // Talks to the server until Shutdown, or until it was idle for too long. Then
  // takes no more work, asks for held tasks to be given back, and returns OK
  // when none is held any more or the grace is over.
  // ERRORS: what the server says to the very first call when it is not
  // transient (Unauthenticated, InvalidArgument, ...). Later errors of any
  // kind are logged and outlived.
  absl::Status Run();

  // Begins the end of Run.
  void Shutdown();

  // Makes the loop call at once, for instance because a slot became free.
  void Wake();

 private:
  v1::SynchronizeRequest BuildRequest(absl::Duration* long_poll);
  // One call, which Wake interrupts. Returns Cancelled only for that.
  absl::Status Call(v1::SynchronizeResponse* response);
  void TakeAnswer(const v1::SynchronizeRequest& request,
                  const v1::SynchronizeResponse& response);
  void NoteFailure(const absl::Status& status);
  void NoteLeases(const v1::SynchronizeResponse& response);
  // Begins the shutdown when it was idle for too long.
  void NoteIdleness();
  // How long a call may be held while nothing is held here.
  absl::Duration IdlePoll() const;
  // How long a call may be held while leases are: they must be renewed in time.
  absl::Duration HeldPoll() const;
  // Sleeps until Shutdown or, when `for_news`, until Wake.
  void Pause(absl::Duration duration, bool for_news);
  void SayGoodbye();
  bool IsShuttingDown() const;

  WorkStub* const stub_;
  const SynchronizerOptions options_;
  HeldTasks held_;
  Backoff backoff_;
  // Of the thread in Run.
  bool answered_ = false;
  bool connected_ = false;
  bool complained_ = false;
  bool drain_ = false;
  absl::Duration server_long_poll_;
  // Since when the server answers and nothing is held.
  absl::Time idle_since_;
  // How long the last lease was given for.
  absl::Duration lease_ = absl::InfiniteDuration();

  mutable absl::Mutex mutex_;
  bool shutting_down_ ABSL_GUARDED_BY(mutex_) = false;
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_SYNCHRONIZER_H_
