// Runs samples through a graph up to one tensor after the other, in the order
// of computation, while the caller changes constants in between. What later
// steps need is kept, so that all steps together cost about as much as one run
// of each sample, however deep the graph is.

#ifndef OPTFARM_ENGINE_OPTIMIZE_STEPWISE_RUNS_H_
#define OPTFARM_ENGINE_OPTIMIZE_STEPWISE_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/session.h"
#include "engine/runtime/tensor.h"
#include "engine/runtime/thread_pool.h"

namespace optfarm::optimize {

// Calls session.Run for each sample, as many at once as the pool has threads,
// and `take` on the thread that ran it. The session should have one thread.
// ERRORS: the first error in the samples' order.
absl::Status RunAtOnce(
    const runtime::Session& session,
    absl::Span<const std::vector<runtime::Tensor>> samples,
    runtime::ThreadPool* pool,
    absl::FunctionRef<void(size_t sample, std::vector<runtime::Tensor> outputs)>
        take);

// One step: what is wanted, and a tensor on the way to it that is worth being
// kept for the steps behind (kNoNode: none). What is kept must not depend on
// constants that change later.
struct RunStep {
  graph::Endpoint wanted;
  graph::Endpoint keep;
};

// THREADS: one at a time. OWNERSHIP: `graph`, `samples` and `pool` outlive it.
class StepwiseRuns {
 public:
  // `steps` are in the order of computation. Tensors beyond `memory_limit`
  // bytes are not kept but computed again, and none is in a graph with
  // branches or loops.
  StepwiseRuns(const graph::Graph& graph,
               absl::Span<const graph::TensorName> inputs,
               absl::Span<const std::vector<runtime::Tensor>> samples,
               std::vector<RunStep> steps, int64_t memory_limit,
               runtime::ThreadPool* pool);

  // Runs the next step; `take` gets the wanted tensor of each sample, several
  // at once.
  // ERRORS: those of making and running a session.
  absl::Status RunNext(
      absl::FunctionRef<void(size_t sample, const runtime::Tensor& value)>
          take);

 private:
  // One value a sample.
  using Values = std::vector<runtime::Tensor>;

  // Tensors of `kept` that `wanted` is computed from.
  template <typename Kept>
  std::vector<graph::Endpoint> Sources(graph::Endpoint wanted,
                                       const Kept& kept) const;
  void PlanLastUses();
  void Keep(graph::Endpoint tensor, Values values);
  void DropUnused();
  graph::TensorName NameOf(graph::Endpoint tensor) const;

  const graph::Graph& graph_;
  std::vector<graph::TensorName> inputs_;
  absl::Span<const std::vector<runtime::Tensor>> samples_;
  std::vector<RunStep> steps_;
  int64_t memory_limit_;
  runtime::ThreadPool* pool_;
  size_t next_ = 0;
  // By node and port.
  using Key = std::pair<graph::NodeId, int>;
  // The last step that reads what was kept.
  std::map<Key, size_t> last_use_;
  std::map<Key, Values> kept_;
  int64_t kept_bytes_ = 0;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_STEPWISE_RUNS_H_
