// Tasks held under a lease: where the thread that does the work and the loop
// that talks to the server meet. No network and no clock in here.

#ifndef OPTFARM_RPC_HELD_TASKS_H_
#define OPTFARM_RPC_HELD_TASKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "optfarm/v1/work.pb.h"

namespace optfarm::rpc {

// UNITS: bytes. What one call may carry of one task's log, and how much of a
// log is worth sending while the task is held (the server keeps no more).
inline constexpr int64_t kMaxLogChunkBytes = 256 << 10;
inline constexpr int64_t kMaxLiveLogBytes = 4 << 20;

// What the server decided about a completion.
struct Decision {
  enum class Kind {
    // It is durable; the task is over.
    kAccepted,
    // The server took the task away; nothing about it matters any more.
    kDropped,
    // Not taken as it is: upload `missing_blobs`, or mend it, and Complete
    // again.
    kRefused,
  };
  Kind kind;
  // The server's words.
  std::string message;
  std::vector<v1::Digest> missing_blobs;
};

// One lease. THREADS: safe.
class HeldTask {
 public:
  // `wake` is called, without locks held, when there is news the server should
  // hear at once; may be null.
  HeldTask(v1::LeasedTask lease, std::function<void()> wake)
      : lease_(std::move(lease)), wake_(std::move(wake)) {}

  const v1::LeasedTask& lease() const { return lease_; }

  // For the thread that does the work ----------------------------------------

  // The file whose bytes are the task's log. It may only grow.
  void SetLogFile(const std::string& path);
  // UNITS: fraction 0..1. The message is cut at 200 characters.
  void SetProgress(double fraction, absl::string_view message);
  // The server took the task away, or the process shuts down: stop working.
  bool ShouldStop() const;
  // The server took the task away.
  bool IsDropped() const;
  // Hands the outcome over, to be sent until the server decided about it.
  void Complete(v1::Completion completion);
  // Blocks until the server decided about the last Complete, or dropped the
  // task.
  Decision AwaitDecision();

  // For the loop --------------------------------------------------------------

  // Asks the working thread to give the task back.
  void RequestRelease();
  // Ends the task here without the server's word.
  void Drop();
  // Writes what the server should know into `*held`.
  void Describe(v1::HeldTask* held) const;
  // Takes the answer to `sent`. Returns true when the task is over.
  bool TakeVerdict(const v1::HeldTask& sent, const v1::TaskVerdict& verdict);

 private:
  const v1::LeasedTask lease_;
  const std::function<void()> wake_;
  mutable absl::Mutex mutex_;
  std::string log_path_ ABSL_GUARDED_BY(mutex_);
  int64_t log_sent_ ABSL_GUARDED_BY(mutex_) = 0;
  double progress_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string progress_message_ ABSL_GUARDED_BY(mutex_);
  bool release_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<v1::Completion> completion_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Decision> decision_ ABSL_GUARDED_BY(mutex_);
};

// All leases of a process. THREADS: safe.
class HeldTasks {
 public:
  // `wake`: as for HeldTask.
  explicit HeldTasks(std::function<void()> wake) : wake_(std::move(wake)) {}

  bool empty() const;
  // Lists every task in `*request`.
  void Fill(v1::SynchronizeRequest* request) const;
  // Takes the answer to `request`; returns the tasks that are new. A lease
  // that is held already and told again is not new.
  std::vector<std::shared_ptr<HeldTask>> Apply(
      const v1::SynchronizeRequest& request,
      const v1::SynchronizeResponse& response);
  // Calls RequestRelease on every task.
  void RequestRelease();
  // Drops every task: the server takes their leases away by and by.
  void DropAll();

 private:
  std::shared_ptr<HeldTask> Find(absl::string_view task_id, int attempt) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void()> wake_;
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<HeldTask>> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_HELD_TASKS_H_
