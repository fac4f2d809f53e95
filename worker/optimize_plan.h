// An optimize lease as files: which blobs go where in the task's folder, and
// the engine's request that finds them there. The worker uses the first half,
// its child the second.

#ifndef OPTFARM_WORKER_OPTIMIZE_PLAN_H_
#define OPTFARM_WORKER_OPTIMIZE_PLAN_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/optimize/optimize_job.h"
#include "optfarm/v1/work.pb.h"
#include "rpc/task_folder.h"
#include "rpc/task_runner.h"

namespace optfarm::worker {

// The blobs an optimize task needs.
// ERRORS: InvalidArgument for a lease that is no optimize task, a dataset with
// a path that leaves its folder or comes twice; FailedPrecondition for data in
// the form that servers without sources send.
absl::StatusOr<std::vector<rpc::TaskInput>> OptimizeInputs(
    const v1::LeasedTask& lease);

// The engine's request for a task whose blobs lie in `folder`. `threads` and
// `tool_version` are left to the caller.
// REQUIRES: OptimizeInputs(lease) is OK.
optimize::OptimizeRequest OptimizeRequestFor(const v1::LeasedTask& lease,
                                             const rpc::TaskFolder& folder);

// Puts into the report what only the worker knows: the artifacts, the digest
// of the optimized graph, model and recipe.
// ERRORS: Internal when the engine made no optimized graph.
absl::Status FinishReport(const v1::LeasedTask& lease,
                          const std::vector<v1::Artifact>& artifacts,
                          v1::Completion* completion);

// A message without this machine's folders: files have the paths that they were
// sent with.
std::string WithoutFolder(absl::string_view text, const v1::LeasedTask& lease,
                          const rpc::TaskFolder& folder);

}  // namespace optfarm::worker

#endif  // OPTFARM_WORKER_OPTIMIZE_PLAN_H_
