#include "engine/transforms/nodes/static_shapes.h"

#include <limits>
#include <optional>
#include <vector>

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::PartialShape;
using runtime::Tensor;

// The whole numbers as int32 or int64; nullopt when they do not fit.
std::optional<Tensor> MakeIndices(const std::vector<int64_t>& values,
                                  bool is_scalar, tensorflow::DataType dtype) {
  const runtime::Shape shape =
      is_scalar ? runtime::Shape()
                : runtime::Shape({static_cast<int64_t>(values.size())});
  if (dtype == tensorflow::DT_INT64) {
    return Tensor::FromValues<int64_t>(shape, values);
  }
  if (dtype != tensorflow::DT_INT32) return std::nullopt;
  std::vector<int32_t> narrow;
  for (int64_t value : values) {
    if (value > std::numeric_limits<int32_t>::max()) return std::nullopt;
    narrow.push_back(static_cast<int32_t>(value));
  }
  return Tensor::FromValues<int32_t>(shape, narrow);
}

// What an op of this role says of a tensor with this shape; nullopt when it is
// not known.
std::optional<Tensor> ShapeValue(graph::OpRole role, const PartialShape& shape,
                                 tensorflow::DataType dtype) {
  if (role == graph::OpRole::kRank) {
    if (!shape.has_rank()) return std::nullopt;
    return MakeIndices({shape.rank()}, true, dtype);
  }
  if (!shape.is_static()) return std::nullopt;
  if (role == graph::OpRole::kSize) {
    const std::optional<int64_t> elements = shape.elements();
    if (!elements.has_value()) return std::nullopt;
    return MakeIndices({*elements}, true, dtype);
  }
  return MakeIndices({shape.dims().begin(), shape.dims().end()}, false, dtype);
}

}  // namespace

absl::StatusOr<graph::ShapeMap> InferShapesWithInputs(
    const graph::Graph& graph, const TransformContext& context) {
  graph::ShapeOptions options;
  for (const graph::TensorName& input : context.inputs()) {
    const NodeId id = graph.Find(input.node);
    if (id != graph::kNoNode && !graph::IsPlaceholder(graph.node(id).op()) &&
        !input.is_control()) {
      options.feeds[{id, input.port}] = PartialShape::Unknown();
    }
  }
  return graph::InferShapes(graph, options);
}

ConstantAnalysis::KnownValues KnownShapeValues(const graph::Graph& graph,
                                               const graph::ShapeMap& shapes) {
  ConstantAnalysis::KnownValues known;
  for (NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    const graph::OpRole role = graph::RowOf(node.op()).role;
    if (role != graph::OpRole::kShape && role != graph::OpRole::kRank &&
        role != graph::OpRole::kSize) {
      continue;
    }
    const absl::StatusOr<tensorflow::DataType> dtype =
        graph::GetTypeOr(node.def(), "out_type", tensorflow::DT_INT32);
    if (!dtype.ok()) continue;
    std::vector<Tensor> values;
    for (const Endpoint& e : node.inputs()) {
      std::optional<Tensor> value = ShapeValue(role, shapes.Of(e), *dtype);
      if (value.has_value()) values.push_back(*std::move(value));
    }
    if (values.size() != node.inputs().size()) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      known[{id, static_cast<int>(i)}] = values[i];
    }
  }
  return known;
}

}  // namespace optfarm::transforms
