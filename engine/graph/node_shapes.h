// Shapes and whole-number values through a single node: a step of
// shape_inference.h, and what a reader asks while it still adds nodes.

#ifndef OPTFARM_ENGINE_GRAPH_NODE_SHAPES_H_
#define OPTFARM_ENGINE_GRAPH_NODE_SHAPES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/shapes/shape_context.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::graph {

// What is known of the node's outputs, by port, from what is known of its
// inputs; nothing for an op that we do not know. `producer` is the graph's
// producer version. OWNERSHIP: `inputs` are borrowed.
// ERRORS: InvalidArgument when no run of the node could succeed.
absl::StatusOr<std::vector<ShapeContext::Tensor>> InferNodeShapes(
    const tensorflow::NodeDef& node,
    std::vector<const ShapeContext::Tensor*> inputs, int producer);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_NODE_SHAPES_H_
