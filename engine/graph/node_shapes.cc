#include "engine/graph/node_shapes.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::graph {
namespace {

// Drops elements that the tensor's type cannot hold: the graph would wrap
// around there, and a shape made of it means nothing.
void DropUnrepresentable(tensorflow::DataType type, PartialValue* value) {
  if (BaseType(type) == tensorflow::DT_INT64) return;
  for (std::optional<int64_t>& element : value->elements) {
    if (element.has_value() &&
        (*element < std::numeric_limits<int32_t>::min() ||
         *element > std::numeric_limits<int32_t>::max())) {
      element = std::nullopt;
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<ShapeContext::Tensor>> InferNodeShapes(
    const tensorflow::NodeDef& node,
    std::vector<const ShapeContext::Tensor*> inputs, int producer) {
  const tensorflow::OpDef* op_def = FindOpDef(node.op());
  if (op_def == nullptr) return std::vector<ShapeContext::Tensor>();
  OPTFARM_ASSIGN_OR_RETURN(const int wanted, InputCount(*op_def, node));
  if (wanted != static_cast<int>(inputs.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("it takes ", wanted, " inputs but has ", inputs.size()));
  }
  // Only the number is needed; a node without its type attribute still has
  // shapes.
  OPTFARM_ASSIGN_OR_RETURN(const int outputs, OutputCount(*op_def, node));
  const OpRow& row = RowOf(node.op());
  if (row.shape == nullptr) {
    return std::vector<ShapeContext::Tensor>(outputs);
  }
  ShapeContext context(*op_def, node, std::move(inputs), outputs, producer);
  OPTFARM_RETURN_IF_ERROR(row.shape(context));
  if (row.values != nullptr) {
    OPTFARM_RETURN_IF_ERROR(row.values(context));
    const auto types = OutputTypes(*op_def, node);
    for (int i = 0; i < outputs; ++i) {
      std::optional<PartialValue>& value = context.outputs()[i].value;
      if (!value.has_value()) continue;
      DropUnrepresentable(types.ok() ? (*types)[i] : tensorflow::DT_INT32,
                          &*value);
    }
  }
  return std::move(context.outputs());
}

}  // namespace optfarm::graph
