// Shape functions of layers that only TensorFlow Lite has. shape_functions.h
// has all others.

#ifndef OPTFARM_ENGINE_GRAPH_SHAPES_LITE_SHAPES_H_
#define OPTFARM_ENGINE_GRAPH_SHAPES_LITE_SHAPES_H_

#include "absl/status/status.h"
#include "engine/graph/shapes/shape_context.h"

namespace optfarm::graph {

// The sequence with as many values as the state h has; the state unchanged.
absl::Status LiteLstmShape(ShapeContext& c);
// As many detections as the attributes allow.
absl::Status DetectionPostprocessShape(ShapeContext& c);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_SHAPES_LITE_SHAPES_H_
