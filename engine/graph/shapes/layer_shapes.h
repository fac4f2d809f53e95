// Shape functions of layers that ONNX and TensorFlow Lite have and TensorFlow
// has not; as shape_functions.h.

#ifndef OPTFARM_ENGINE_GRAPH_SHAPES_LAYER_SHAPES_H_
#define OPTFARM_ENGINE_GRAPH_SHAPES_LAYER_SHAPES_H_

#include "absl/status/status.h"
#include "engine/graph/shapes/shape_context.h"

namespace optfarm::graph {

absl::Status AnyResizeShape(ShapeContext& c);
absl::Status Conv2dTransposeShape(ShapeContext& c);
absl::Status RecurrentSequenceShape(ShapeContext& c);
absl::Status WindowPoolShape(ShapeContext& c);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_SHAPES_LAYER_SHAPES_H_
