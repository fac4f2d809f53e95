// What shape inference knows of a graph, in the form transforms need it.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_STATIC_SHAPES_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_STATIC_SHAPES_H_

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/machinery/transform.h"
#include "engine/transforms/nodes/constant_folding.h"

namespace optfarm::transforms {

// Shapes of all tensors. Of a declared input only a Placeholder's own shape is
// relied on; what is fed in the middle of the graph has an unknown shape.
// ERRORS: InvalidArgument for a cyclic graph.
absl::StatusOr<graph::ShapeMap> InferShapesWithInputs(
    const graph::Graph& graph, const TransformContext& context);

// Outputs of Shape, ShapeN, Rank and Size nodes that are known without running
// the graph, with the dtype the node gives. Nodes with a size that does not fit
// into int32 are left out.
ConstantAnalysis::KnownValues KnownShapeValues(const graph::Graph& graph,
                                               const graph::ShapeMap& shapes);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_STATIC_SHAPES_H_
