// What a session is made with; a plan is made for it.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_SESSION_OPTIONS_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_SESSION_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/runtime/core/immutable_const.h"
#include "engine/runtime/core/resource.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/plan/fused_nodes.h"

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
  // Filled when the session is made: which fusions took which nodes. nullptr:
  // nobody asks. OWNERSHIP: the caller's.
  std::vector<FusedNodes>* fused_nodes = nullptr;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_SESSION_OPTIONS_H_
