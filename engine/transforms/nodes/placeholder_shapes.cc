#include "engine/transforms/nodes/placeholder_shapes.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::transforms {

using graph::Graph;
using graph::NodeId;

absl::StatusOr<PlaceholderShapes> ReadShapes(
    const TransformArguments& arguments) {
  const std::vector<std::string> names = arguments.Strings("name");
  const std::vector<graph::PartialShape> shapes =
      arguments.Shapes("shape_for_name");
  const size_t types = arguments.Types("type_for_name").size();
  if (names.size() != shapes.size() || (types > 0 && types != names.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'name' is given ", names.size(), " times, 'shape_for_name' ",
        shapes.size(), " times and 'type_for_name' ", types,
        " times; each name needs a shape"));
  }
  PlaceholderShapes read;
  if (arguments.Has("shape")) read.of_all = arguments.Shape("shape");
  for (size_t i = 0; i < names.size(); ++i) {
    read.of_one.insert_or_assign(names[i], shapes[i]);
  }
  return read;
}

void SetShapes(const PlaceholderShapes& shapes, Graph* graph) {
  for (NodeId id : graph->Ids()) {
    graph::Node* node = graph->mutable_node(id);
    if (!graph::IsPlaceholder(node->op()) &&
        !graph::IsOptionalPlaceholder(node->op())) {
      continue;
    }
    const auto own = shapes.of_one.find(node->name());
    if (own == shapes.of_one.end() && !shapes.of_all.has_value()) continue;
    const graph::PartialShape& shape =
        own == shapes.of_one.end() ? *shapes.of_all : own->second;
    *(*node->mutable_def()->mutable_attr())["shape"].mutable_shape() =
        shape.ToProto();
  }
}

}  // namespace optfarm::transforms
