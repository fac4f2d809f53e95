// The child's side of a task: runs in a process of its own, with limits, and
// leaves an outcome in its folder. See rpc/task_process.h for the parent's.

#ifndef OPTFARM_RPC_TASK_CHILD_H_
#define OPTFARM_RPC_TASK_CHILD_H_

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optfarm/v1/work.pb.h"
#include "rpc/task_folder.h"

namespace optfarm::rpc {

// Exit status of a child that ran out of memory: nothing can be written then.
inline constexpr int kOutOfMemoryExit = 77;

// UNITS: fraction 0..1.
using ChildProgress =
    std::function<void(double fraction, absl::string_view message)>;

// Does the work of a lease. An error is the engine's (see EngineFailure).
using ChildWork = absl::FunctionRef<absl::StatusOr<v1::Completion>(
    const v1::LeasedTask& lease, const TaskFolder& folder,
    const ChildProgress& progress)>;

// Reads the lease in `folder`, does the work, writes the outcome, and returns
// the process's exit status: 0 when an outcome was written, even a bad one.
// Running out of memory anywhere from here on ends the process with
// kOutOfMemoryExit. What is printed is the task's log.
// With a sandbox (base/sandbox.h) the work reads the system's libraries and the
// folder, writes where the folder is for writing, and has nothing else.
enum class ChildSandbox { kNone, kFull };
int RunTaskChild(const std::string& folder, ChildWork work,
                 ChildSandbox sandbox = ChildSandbox::kNone);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_TASK_CHILD_H_
