// The parent's side of a task: one child process with limits, watched until it
// ends, and an outcome whatever happens to it. See rpc/task_child.h.

#ifndef OPTFARM_RPC_TASK_PROCESS_H_
#define OPTFARM_RPC_TASK_PROCESS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "optfarm/v1/work.pb.h"
#include "rpc/task_folder.h"

namespace optfarm::rpc {

// What one task may use. The first five are named after flags of the program,
// and messages about them name the flag.
struct TaskLimits {
  // UNITS: bytes of address space; 0: none. (--max_memory_mb)
  uint64_t max_memory_bytes = 0;
  // Wall time. (--max_task_seconds)
  absl::Duration max_wall_time = absl::InfiniteDuration();
  // CPU time of all threads; 0: none. (--max_cpu_seconds)
  absl::Duration max_cpu_time;
  // UNITS: bytes of one file; 0: none. (--max_file_mb)
  uint64_t max_file_bytes = 0;
  // UNITS: bytes on disk of what the task has written, in out() and state();
  // 0: none. A hundred thousand files are too many, whatever their size.
  // (--max_folder_mb)
  uint64_t max_folder_bytes = 0;
  // UNITS: open files; 0: none.
  uint64_t max_open_files = 1024;
  // UNITS: processes and threads of the user; 0: none. For who starts threads
  // without end.
  uint64_t max_processes = 4096;
  // UNITS: bytes of the task's log, which is cut there.
  uint64_t max_log_bytes = 16 << 20;
};

struct TaskProcessOptions {
  // The program and its arguments; it should call RunTaskChild.
  std::vector<std::string> argv;
  TaskLimits limits;
  // The child is alone: without a network, other processes, and this process's
  // environment. Not for what has to reach others, such as adb.
  bool alone = true;
  // Longest wall time that the lease allows.
  absl::Duration run_limit = absl::InfiniteDuration();
  // True: kill the child and give the task back. May be null.
  std::function<bool()> should_stop;
  // UNITS: fraction 0..1. May be null.
  std::function<void(double fraction, absl::string_view message)> on_progress;
  // How often the child is looked at.
  absl::Duration poll = absl::Milliseconds(200);
  // What wall time is measured with. OWNERSHIP: borrowed.
  Clock* clock = RealClock();
};

// Runs the child in `folder` and returns what it left there. Otherwise:
// - should_stop: Released.
// - A limit of TaskLimits exceeded: a USER failure that names limit and flag,
//   because the same input would exceed it again.
// - A crash, the lease's run_limit, or no outcome: an INTERNAL failure.
// The log ends with a line that says how the child ended.
v1::Completion RunTaskProcess(const TaskProcessOptions& options,
                              const TaskFolder& folder);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_TASK_PROCESS_H_
