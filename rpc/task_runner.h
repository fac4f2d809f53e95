// What a participant does with a lease: fetch the blobs, run the child, upload
// what it made, hand the outcome over until the server has decided. The same
// for workers and agents; they differ in the plan.

#ifndef OPTFARM_RPC_TASK_RUNNER_H_
#define OPTFARM_RPC_TASK_RUNNER_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rpc/blob_cache.h"
#include "rpc/blob_transfer.h"
#include "rpc/held_tasks.h"
#include "rpc/task_process.h"

namespace optfarm::rpc {

// A blob the child needs.
struct TaskInput {
  v1::Digest digest;
  // Below TaskFolder::in(): '/' between parts, no "." or ".." among them.
  std::string path;
};

// How a lease is to be worked on.
struct TaskPlan {
  std::vector<TaskInput> inputs;
  std::vector<std::string> argv;
  TaskLimits limits;
  // As TaskProcessOptions::alone.
  bool alone = true;
};

struct TaskRunnerOptions {
  // Folder of this process alone; "cache" and "tasks" are made in it, and
  // tasks that a killed predecessor left there are removed.
  std::string work_folder;
  // UNITS: bytes of the blob cache.
  int64_t cache_bytes = int64_t{8} << 30;
  // How the files of a task that is kept in get into its folder. Links are for
  // where it gets namespaces, in which they are read-only.
  Placing placing = Placing::kCopy;
  // An error is the lease's fault: the task fails as InvalidArgument does.
  std::function<absl::StatusOr<TaskPlan>(const v1::LeasedTask& lease,
                                         const TaskFolder& folder)>
      plan;
  // Completes an outcome that is no failure, when `artifacts` (what the child
  // left in TaskFolder::out()) are on the server. An error is an internal
  // failure of the task.
  std::function<absl::Status(const v1::LeasedTask& lease,
                             const std::vector<v1::Artifact>& artifacts,
                             v1::Completion* completion)>
      finish;
  // Called when a task is over. May be null.
  std::function<void()> on_idle;
  TransferOptions transfer;
};

// THREADS: safe.
class TaskRunner {
 public:
  // OWNERSHIP: `stub` must outlive the object.
  // ERRORS: FailedPrecondition when another process uses the work folder;
  // those of making folders.
  static absl::StatusOr<std::unique_ptr<TaskRunner>> Create(
      ModelStub* stub, TaskRunnerOptions options);

  // Waits for all tasks: they end when they are dropped or decided.
  ~TaskRunner();

  // Works on the lease in a thread of its own.
  void Start(std::shared_ptr<HeldTask> task);

  // UNITS: tasks being worked on.
  int active() const;
  // The devices of those.
  std::set<std::string> busy_devices() const;

 private:
  struct Worker {
    std::thread thread;
    // Of a benchmark task.
    std::string device;
    bool over = false;
  };

  TaskRunner(ModelStub* stub, TaskRunnerOptions options, int lock_fd)
      : stub_(stub), options_(std::move(options)), lock_fd_(lock_fd) {}

  void Run(HeldTask* task);
  v1::Completion Work(HeldTask* task, const TaskFolder& folder);
  Placing PlacingOf(const TaskPlan& plan) const;
  // Copies of the task's files may take what the task may write.
  absl::Status CheckInputs(const TaskPlan& plan) const;
  absl::Status Fetch(HeldTask* task, const TaskPlan& plan,
                     const TaskFolder& folder);
  void HandOver(HeldTask* task, const TaskFolder& folder,
                v1::Completion completion);
  // Uploads and names artifacts in `*completion`, or makes it a failure.
  void Deliver(HeldTask* task, const TaskFolder& folder,
               v1::Completion* completion);
  absl::StatusOr<std::vector<v1::Artifact>> UploadFiles(
      HeldTask* task, const std::vector<std::string>& paths);
  TransferOptions TransferFor(HeldTask* task, bool until_stop) const;
  // Joins threads that are over.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ModelStub* const stub_;
  const TaskRunnerOptions options_;
  const int lock_fd_;
  std::unique_ptr<BlobCache> cache_;
  mutable absl::Mutex mutex_;
  std::list<Worker> workers_ ABSL_GUARDED_BY(mutex_);
};

// ERRORS: InvalidArgument unless `path` is relative, at most 1024 bytes, and
// without empty, "." and ".." parts and control characters.
absl::Status CheckRelativePath(absl::string_view path);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_TASK_RUNNER_H_
