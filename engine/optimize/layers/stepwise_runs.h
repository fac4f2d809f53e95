// Runs samples through a graph up to one tensor after the other, in the order
// of computation, while the caller changes constants in between. What later
// steps need is kept, so that all steps together cost about as much as one run
// of each sample, however deep the graph is. Constants that change are fed, so
// that the sessions of all steps are made at once, on all threads.

#ifndef OPTFARM_ENGINE_OPTIMIZE_LAYERS_STEPWISE_RUNS_H_
#define OPTFARM_ENGINE_OPTIMIZE_LAYERS_STEPWISE_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"

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

// One step: what is wanted, which is kept for the steps behind, and a float
// constant that may change after the step (kNoNode: none). What is wanted must
// not depend on constants that change after its step.
struct RunStep {
  graph::Endpoint wanted;
  graph::NodeId changes = graph::kNoNode;
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
  // By node and port.
  using Key = std::pair<graph::NodeId, int>;

  // What a step's session is fed besides the inputs, and the session.
  struct Part {
    std::vector<graph::Endpoint> sources;
    std::vector<graph::NodeId> constants;
    // Made when the step runs, where it is not known before what is fed.
    std::unique_ptr<runtime::Session> session;
  };

  // What the step is computed from: tensors of `kept`, and constants of
  // `changed`.
  template <typename Kept>
  Part PartOf(const RunStep& step, const Kept& kept,
              const std::set<graph::NodeId>& changed) const;
  bool IsFed(graph::Endpoint tensor) const;
  void PlanParts();
  absl::Status MakeSession(const RunStep& step, Part* part) const;
  absl::Status MakeSessions();
  // The part of the next step: the planned one, or another where memory did not
  // do for what was to be kept.
  absl::StatusOr<Part> NextPart();
  // Whether a later step reads it, and it is not kept yet.
  bool IsRead(graph::Endpoint tensor) const;
  void DropUnused();
  graph::TensorName NameOf(graph::Endpoint tensor) const;

  const graph::Graph& graph_;
  std::vector<graph::TensorName> inputs_;
  absl::Span<const std::vector<runtime::Tensor>> samples_;
  std::vector<RunStep> steps_;
  int64_t memory_limit_;
  runtime::ThreadPool* pool_;
  // Whether values may be kept and constants fed.
  bool keeps_ = false;
  size_t next_ = 0;
  // One a step.
  std::vector<Part> parts_;
  // The last step that reads what was kept.
  std::map<Key, size_t> last_use_;
  std::map<Key, Values> kept_;
  int64_t kept_bytes_ = 0;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_LAYERS_STEPWISE_RUNS_H_
