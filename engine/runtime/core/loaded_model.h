// A graph whose weights are in memory once, for all sessions over it.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_LOADED_MODEL_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_LOADED_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/packed_weights.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

// THREADS: may be used from many threads at once; but for what sessions pack
// and find, it never changes.
class LoadedModel {
 public:
  // Takes the weights out of the graph's nodes, one after the other, so that
  // no more than one of them is there twice. A constant that is not well formed
  // is an error of the session that needs it.
  static std::shared_ptr<const LoadedModel> Create(graph::Graph graph);

  // Its Const nodes have lost their elements, but for small ones: what there is
  // to know of shapes is still there.
  const graph::Graph& graph() const { return graph_; }
  // The value of a Const node.
  // ERRORS: InvalidArgument for a value that is not well formed;
  // FailedPrecondition for another node.
  const absl::StatusOr<std::shared_ptr<SharedWeights>>& WeightsOf(
      graph::NodeId id) const {
    return values_[id];
  }
  // The same of an ImmutableConst node, whose value lies outside of the graph:
  // what the first session found, where another finds it at the same place.
  std::shared_ptr<SharedWeights> WeightsAt(graph::NodeId id,
                                           const Tensor& value,
                                           absl::string_view mapped_file) const;
  // UNITS: bytes of all values.
  int64_t value_bytes() const { return value_bytes_; }

 private:
  explicit LoadedModel(graph::Graph graph) : graph_(std::move(graph)) {}

  graph::Graph graph_;
  // By NodeId.
  std::vector<absl::StatusOr<std::shared_ptr<SharedWeights>>> values_;
  struct Region {
    const void* data = nullptr;
    std::shared_ptr<SharedWeights> weights;
  };
  mutable absl::Mutex mutex_;
  mutable absl::flat_hash_map<graph::NodeId, Region> regions_
      ABSL_GUARDED_BY(mutex_);
  int64_t value_bytes_ = 0;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_LOADED_MODEL_H_
