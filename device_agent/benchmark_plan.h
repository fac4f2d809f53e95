// A benchmark lease as files: which blobs go where in the task's folder. The
// agent places them, its child finds them.

#ifndef OPTFARM_DEVICE_AGENT_BENCHMARK_PLAN_H_
#define OPTFARM_DEVICE_AGENT_BENCHMARK_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optfarm/v1/work.pb.h"
#include "rpc/task_folder.h"
#include "rpc/task_runner.h"

namespace optfarm::device_agent {

// The graphs a benchmark task on device `device`, which has these engines,
// needs.
// ERRORS: InvalidArgument for a lease that is no benchmark task, is for
// another device, has no variants, or two of one name.
absl::StatusOr<std::vector<rpc::TaskInput>> BenchmarkInputs(
    const v1::LeasedTask& lease, const std::string& device,
    const std::vector<std::string>& engines = {});

// Where the graphs lie, in the order of the variants.
std::vector<std::string> GraphPaths(const v1::LeasedTask& lease,
                                    const rpc::TaskFolder& folder);

// Where the check samples lie, in the same order; "" for variants without one.
std::vector<std::string> CheckPaths(const v1::LeasedTask& lease,
                                    const rpc::TaskFolder& folder);

// Where the file lies that an engine runs for a variant, by its number.
// REQUIRES: the engine is known.
std::string EnginePath(const rpc::TaskFolder& folder, int variant,
                       const std::string& engine);

// Checks that a benchmark was measured on `device`.
// ERRORS: Internal.
absl::Status CheckMeasured(const std::string& device,
                           const v1::Completion& completion);

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_BENCHMARK_PLAN_H_
