// The shapes that TensorFlow 1.3's parameters of fold_constants give
// placeholders, so that what depends on shapes alone can be folded. Its types
// only went with them.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_PLACEHOLDER_SHAPES_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_PLACEHOLDER_SHAPES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

struct PlaceholderShapes {
  std::optional<graph::PartialShape> of_all;
  std::map<std::string, graph::PartialShape> of_one;
};

// ERRORS: InvalidArgument when names and shapes are not equally many.
absl::StatusOr<PlaceholderShapes> ReadShapes(
    const TransformArguments& arguments);

// Writes them into the graph's placeholders.
void SetShapes(const PlaceholderShapes& shapes, graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_PLACEHOLDER_SHAPES_H_
