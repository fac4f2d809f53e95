// Whether a device's answers are the worker's: the same sample run here, its
// outputs compared with those that came along.

#ifndef OPTFARM_DEVICE_AGENT_NUMERIC_CHECK_H_
#define OPTFARM_DEVICE_AGENT_NUMERIC_CHECK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optfarm/v1/measurement.pb.h"
#include "optfarm/v1/work.pb.h"
#include "rpc/task_folder.h"

namespace optfarm::device_agent {

// Runs the check sample at `sample_path` through the graph at `graph_path`.
// ERRORS: those of reading either and of running the graph.
absl::StatusOr<v1::NumericCheck> CheckNumbersOf(const std::string& graph_path,
                                                const std::string& sample_path);

// One entry a variant of the lease, in their order; nullopt for those without a
// check sample.
absl::StatusOr<std::vector<std::optional<v1::NumericCheck>>> CheckNumbers(
    const v1::LeasedTask& lease, const rpc::TaskFolder& folder);

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_NUMERIC_CHECK_H_
