#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "engine/api/handles.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"

namespace optfarm::api {
namespace {

tensorflow::DataType TypeOf(const graph::Graph& graph, graph::Endpoint end) {
  const graph::Node& node = graph.node(end.node);
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  if (def == nullptr) return tensorflow::DT_INVALID;
  const auto types = graph::OutputTypes(*def, node.def());
  if (!types.ok() || end.port >= static_cast<int>(types->size())) {
    return tensorflow::DT_INVALID;
  }
  return (*types)[end.port];
}

TensorDescription Describe(const graph::Graph& graph,
                           const graph::ShapeMap& shapes, graph::Endpoint end) {
  TensorDescription description;
  description.name = graph.NameOf(end);
  description.dtype = TypeOf(graph, end);
  const graph::PartialShape& shape = shapes.Of(end);
  description.has_rank = shape.has_rank();
  if (shape.has_rank()) {
    description.dims.assign(shape.dims().begin(), shape.dims().end());
  }
  return description;
}

}  // namespace

absl::StatusOr<Signature> FindSignature(const graph::Graph& graph) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<graph::Endpoint> ends,
                           graph::FindOutputs(graph));
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           graph::InferShapes(graph));
  Signature signature;
  std::vector<graph::NodeId> roots;
  for (const graph::Endpoint& end : ends) {
    roots.push_back(end.node);
    signature.outputs.push_back(Describe(graph, shapes, end));
  }
  const std::vector<bool> needed = graph::ReachableFrom(graph, roots);
  for (const graph::NodeId id : graph.Ids()) {
    const std::string& op = graph.node(id).op();
    if (needed[id] && graph::IsPlaceholder(op)) {
      signature.inputs.push_back(Describe(graph, shapes, {id, 0}));
    }
  }
  return signature;
}

}  // namespace optfarm::api
