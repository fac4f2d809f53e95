// A graph whose weights are in memory once, for all sessions over it.

#ifndef OPTFARM_ENGINE_RUNTIME_LOADED_MODEL_H_
#define OPTFARM_ENGINE_RUNTIME_LOADED_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/runtime/packed_weights.h"
#include "engine/runtime/tensor.h"

namespace optfarm::runtime {

// THREADS: may be used from many threads at once; but for what sessions pack,
// it never changes.
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
  absl::StatusOr<Tensor> ValueOf(graph::NodeId id) const;
  // UNITS: bytes of all values.
  int64_t value_bytes() const { return value_bytes_; }

  // Whether the tensor's elements are those of a Const node.
  bool IsValue(const Tensor& tensor) const {
    return buffers_.contains(tensor.raw());
  }
  // Values in the order in which fast kernels read them.
  PackedWeights& packed() const { return packed_; }

 private:
  explicit LoadedModel(graph::Graph graph) : graph_(std::move(graph)) {}

  graph::Graph graph_;
  // By NodeId.
  std::vector<absl::StatusOr<Tensor>> values_;
  // Of all values that are larger than nothing.
  absl::flat_hash_set<const void*> buffers_;
  mutable PackedWeights packed_;
  int64_t value_bytes_ = 0;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_LOADED_MODEL_H_
