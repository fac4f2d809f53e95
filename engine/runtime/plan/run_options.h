// What one run is asked for, and the trace that it leaves.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_RUN_OPTIONS_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_RUN_OPTIONS_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm {
class Clock;
}  // namespace optfarm

namespace optfarm::runtime {

// What one output of a node was in one run.
struct OutputInfo {
  // DT_INVALID when a Switch cut it off.
  DataType dtype = tensorflow::DT_INVALID;
  Shape shape;
};

// What one node did in one run.
struct NodeTiming {
  std::string name;
  std::string op;
  // Since the run's start.
  absl::Duration start;
  absl::Duration duration;
  // UNITS: bytes of all its outputs.
  int64_t output_bytes = 0;
  // One for each output that nobody feeds.
  std::vector<OutputInfo> outputs;
  // The nodes that ran as one step, in their order; `name` is the last's and
  // `op` all their ops with '+' between. Empty for a node that ran alone.
  std::vector<std::string> fused_names;
};

// Filled by a traced run, in the order of execution.
struct RunTrace {
  std::vector<NodeTiming> nodes;
  // UNITS: bytes; the most that the run's tensors took at a time. Feeds,
  // weights and folded constants are not the run's.
  int64_t peak_bytes = 0;
};

// What one run may take and who may stop it.
struct RunOptions {
  // Filled by the run. OWNERSHIP: the caller's.
  RunTrace* trace = nullptr;
  // Looked at between steps and, within long kernels, every few milliseconds:
  // a run ends soon after.
  absl::Duration timeout = absl::InfiniteDuration();
  // UNITS: bytes of the run's tensors and of kernels' working memory at a time,
  // looked at before they are taken; feeds, weights and folded constants are
  // not the run's.
  int64_t memory_limit = std::numeric_limits<int64_t>::max();
  // Set by any thread to end the run. OWNERSHIP: the caller's.
  const std::atomic<bool>* cancelled = nullptr;
  // What `timeout` is measured with; nullptr: the machine's clock.
  // OWNERSHIP: the caller's.
  Clock* clock = nullptr;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_RUN_OPTIONS_H_
