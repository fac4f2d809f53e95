// What can be known of every tensor's shape without running the graph.
//
// Inference follows TensorFlow's rules for each op, carries whole-number values
// along so that shapes computed in the graph are understood (Shape -> ... ->
// Reshape), and goes once through the graph: what comes around a loop is
// unknown at the loop's head. It does not fail on ops it does not know; their
// outputs have unknown shapes.

#ifndef OPTFARM_ENGINE_GRAPH_SHAPE_INFERENCE_H_
#define OPTFARM_ENGINE_GRAPH_SHAPE_INFERENCE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::graph {

struct ShapeOptions {
  // Tensors that are fed, and with what shape: the shape counts in place of
  // what the graph says, and the value is not known whatever computes it.
  absl::flat_hash_map<Endpoint, PartialShape> feeds;
};

// A node whose inputs or attributes cannot be right.
struct ShapeProblem {
  NodeId node = kNoNode;
  // "node 'fc/MatMul' (MatMul): matrices [1,3] and [4,5] do not fit: ...".
  std::string text;
};

// A value, independent of the graph it was made from. THREADS: const methods
// may run concurrently.
class ShapeMap {
 public:
  // Unknown for a tensor that the graph does not have.
  const PartialShape& Of(Endpoint tensor) const;
  // The elements of a whole-number tensor, where they are known (at most a
  // thousand of them); nullptr when nothing is.
  const PartialValue* ValueOf(Endpoint tensor) const;
  // In dataflow order, so that the first is the cause.
  const std::vector<ShapeProblem>& problems() const { return problems_; }

 private:
  friend absl::StatusOr<ShapeMap> InferShapes(const Graph& graph,
                                              const ShapeOptions& options);

  // Indexed by NodeId, then by port.
  std::vector<std::vector<PartialShape>> shapes_;
  absl::flat_hash_map<Endpoint, PartialValue> values_;
  std::vector<ShapeProblem> problems_;
};

// ERRORS: InvalidArgument for a cycle that is not a loop. Everything else that
// is wrong becomes a ShapeProblem. Cost grows with nodes and edges, not with
// the bytes of the model's tensors.
absl::StatusOr<ShapeMap> InferShapes(const Graph& graph,
                                     const ShapeOptions& options = {});

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_SHAPE_INFERENCE_H_
