// A graph whose weights are in memory once, for all sessions over it.

#ifndef OPTFARM_ENGINE_RUNTIME_LOADED_MODEL_H_
#define OPTFARM_ENGINE_RUNTIME_LOADED_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/runtime/tensor.h"

namespace optfarm::runtime {

// THREADS: never changes; may be read from many threads at once.
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

 private:
  explicit LoadedModel(graph::Graph graph) : graph_(std::move(graph)) {}

  graph::Graph graph_;
  // By NodeId.
  std::vector<absl::StatusOr<Tensor>> values_;
  int64_t value_bytes_ = 0;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_LOADED_MODEL_H_
