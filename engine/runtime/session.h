// Runs a graph: the runtime's one main header. A session is a plan for one set
// of feeds and fetches; any tensor of the graph may be fed or fetched, and an
// operation without a tensor (an initializer) is run by fetching "^name".

#ifndef OPTFARM_ENGINE_RUNTIME_SESSION_H_
#define OPTFARM_ENGINE_RUNTIME_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/immutable_const.h"
#include "engine/runtime/loaded_model.h"
#include "engine/runtime/resource.h"
#include "engine/runtime/tensor.h"
#include "engine/runtime/thread_pool.h"

namespace optfarm::runtime {

struct SessionOptions {
  // Threads that kernels may use, the caller's included.
  int threads = 1;
  // The threads to use instead: then `threads` does not matter. OWNERSHIP: the
  // caller's, and it outlives the session.
  ThreadPool* pool = nullptr;
  // Receives each line that Print ops write, without newline; must be safe to
  // call from several threads when Run is. Empty: standard error.
  std::function<void(absl::string_view)> print;
  // Evaluates what depends on constants alone once, at load.
  bool fold_constants = true;
  // Runs what it can by kernels made for this processor, several nodes as one
  // step. Results agree with the reference kernels' within the rounding of
  // their dtype; what is fetched or read elsewhere is never left out. Off: the
  // reference kernels alone, node by node.
  bool fast_kernels = true;
  // Lets a node write its result over an input that nobody reads any more.
  bool reuse_buffers = true;
  // Gives results and kernels' tensors places in one piece of memory. For
  // inputs of the graph's own static shapes the piece is planned from inferred
  // shapes when the session is made; for others, and more closely for all, the
  // first run is watched. Later runs of such inputs allocate nothing.
  bool plan_memory = true;
  // UNITS: bytes of weights and folded constants; loading beyond it fails.
  int64_t memory_limit = std::numeric_limits<int64_t>::max();
  // UNITS: bytes that packed weights may take. What is more, as far as it lies
  // in a mapped file, is packed by each run when it comes to it and let go
  // again: that takes time and little memory. What is loaded from elsewhere is
  // packed as always.
  int64_t packed_weights_limit = std::numeric_limits<int64_t>::max();
  // Where ImmutableConst nodes find their values; empty: such nodes are
  // refused.
  RegionFinder find_region;
  // Where variables and tables live. Empty: a container of the session's own,
  // which lives as long as the session. Sessions with the same container share
  // what they assign.
  std::shared_ptr<ResourceContainer> resources;
};

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
};

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

#endif  // OPTFARM_ENGINE_RUNTIME_SESSION_H_
