// What shape functions of ops on pictures share.

#ifndef OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_LAYOUT_H_
#define OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_LAYOUT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/shapes/shape_context.h"

namespace optfarm::graph {

// Where batch, channels and the first spatial axis are.
struct Layout {
  int channels = 0;
  int rows = 0;
};

// From the attribute data_format, for tensors of `rank`.
// ERRORS: InvalidArgument for an unknown one.
absl::StatusOr<Layout> ReadLayout(const ShapeContext& c, int rank);

// Output 0 has the shape, all others are scalars.
absl::Status SetWithScalars(ShapeContext& c, PartialShape out);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_LAYOUT_H_
