// Runs a graph: the runtime's one main header. A session is a plan for one set
// of feeds and fetches; any tensor of the graph may be fed or fetched, and an
// operation without a tensor (an initializer) is run by fetching "^name".

#ifndef OPTFARM_ENGINE_RUNTIME_SESSION_SESSION_H_
#define OPTFARM_ENGINE_RUNTIME_SESSION_SESSION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/loaded_model.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/plan/run_options.h"
#include "engine/runtime/plan/session_options.h"

namespace optfarm::runtime {

class Session {
 public:
  // Plans the part of `graph` that `fetches` need when `feeds` are given, and
  // makes its kernels. The graph is not needed afterwards.
  // ERRORS: NotFound or InvalidArgument for a feed or fetch that is not in the
  // graph or has no such port, or for loops that are not well formed;
  // Unimplemented naming op, node and dtype for
  // what the runtime cannot run, before anything runs; ResourceExhausted
  // beyond the memory limit.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const graph::Graph& graph, absl::Span<const graph::TensorName> feeds,
      absl::Span<const graph::TensorName> fetches,
      const SessionOptions& options = {});
  // As above, with the weights of `model`, which other sessions share.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const std::shared_ptr<const LoadedModel>& model,
      absl::Span<const graph::TensorName> feeds,
      absl::Span<const graph::TensorName> fetches,
      const SessionOptions& options = {});
  ~Session();

  // Runs once. `inputs` are the feeds in order; returns the fetches in order.
  // An optional placeholder (PlaceholderWithDefault) needs no feed.
  // ERRORS: InvalidArgument for a wrong number or dtype of feeds, a placeholder
  // that is needed but not fed, or a kernel's error with node and op; Internal
  // never by a model's fault; FailedPrecondition for a fetch that a Switch cut
  // off; Cancelled, DeadlineExceeded and ResourceExhausted by what `options`
  // ask for.
  // A tensor within a loop is fetched as its value in the last iteration that
  // made one; an operation's result is a tensor without value.
  // THREADS: may be called from many threads at once.
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> inputs,
                                          const RunOptions& options) const;
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> inputs,
                                          RunTrace* trace = nullptr) const;

  // Number of steps a run executes.
  int step_count() const;
  // UNITS: bytes held for the whole life: weights, also where they are packed,
  // and folded constants.
  int64_t constant_bytes() const;

 private:
  struct Loaded;
  explicit Session(std::unique_ptr<Loaded> loaded);
  static absl::StatusOr<std::unique_ptr<Session>> CreateOver(
      const graph::Graph& graph, const LoadedModel* model,
      absl::Span<const graph::TensorName> feeds,
      absl::Span<const graph::TensorName> fetches,
      const SessionOptions& options);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_SESSION_SESSION_H_
