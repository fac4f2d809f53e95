// Runs the shape functions over a graph in dataflow order.

#include "engine/graph/shape_inference.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/node_shapes.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/shapes/shape_context.h"

namespace optfarm::graph {
namespace {

using Tensors = std::vector<std::vector<ShapeContext::Tensor>>;

// Infers one node's outputs from what is known of its inputs. `tensors` has
// the outputs of the nodes before it.
absl::StatusOr<std::vector<ShapeContext::Tensor>> InferNode(
    const Graph& graph, const Node& node, const Tensors& tensors) {
  static const ShapeContext::Tensor* const unknown = new ShapeContext::Tensor;
  std::vector<const ShapeContext::Tensor*> inputs;
  inputs.reserve(node.inputs().size());
  for (const Endpoint& input : node.inputs()) {
    const std::vector<ShapeContext::Tensor>& ports = tensors[input.node];
    inputs.push_back(input.port < static_cast<int>(ports.size())
                         ? &ports[input.port]
                         : unknown);
  }
  return InferNodeShapes(node.def(), std::move(inputs),
                         graph.versions().producer());
}

}  // namespace

const PartialShape& ShapeMap::Of(Endpoint tensor) const {
  static const PartialShape* const unknown = new PartialShape;
  if (tensor.node < 0 || tensor.node >= static_cast<NodeId>(shapes_.size())) {
    return *unknown;
  }
  const std::vector<PartialShape>& ports = shapes_[tensor.node];
  if (tensor.port < 0 || tensor.port >= static_cast<int>(ports.size())) {
    return *unknown;
  }
  return ports[tensor.port];
}

const PartialValue* ShapeMap::ValueOf(Endpoint tensor) const {
  const auto it = values_.find(tensor);
  return it == values_.end() ? nullptr : &it->second;
}

absl::StatusOr<ShapeMap> InferShapes(const Graph& graph,
                                     const ShapeOptions& options) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           DataflowOrder(graph));
  // How many ports of a node anybody asks for, in case its op is unknown.
  std::vector<int> ports_wanted(graph.id_limit(), 0);
  for (const auto& [tensor, shape] : options.feeds) {
    if (graph.Has(tensor.node)) {
      ports_wanted[tensor.node] =
          std::max(ports_wanted[tensor.node],
                   std::min<int>(tensor.port, kMaxNodeArity - 1) + 1);
    }
  }
  ShapeMap map;
  Tensors tensors(graph.id_limit());
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    absl::StatusOr<std::vector<ShapeContext::Tensor>> outputs =
        InferNode(graph, node, tensors);
    if (outputs.ok()) {
      tensors[id] = *std::move(outputs);
    } else {
      map.problems_.push_back(
          {id, absl::StrCat("node '", node.name(), "' (", node.op(),
                            "): ", outputs.status().message())});
    }
    if (static_cast<int>(tensors[id].size()) < ports_wanted[id]) {
      tensors[id].resize(ports_wanted[id]);
    }
    for (int port = 0; port < ports_wanted[id]; ++port) {
      const auto feed = options.feeds.find(Endpoint{id, port});
      if (feed == options.feeds.end()) continue;
      tensors[id][port] = {feed->second, std::nullopt, std::nullopt};
    }
  }
  map.shapes_.resize(graph.id_limit());
  for (NodeId id : order) {
    for (size_t port = 0; port < tensors[id].size(); ++port) {
      ShapeContext::Tensor& tensor = tensors[id][port];
      map.shapes_[id].push_back(std::move(tensor.shape));
      if (tensor.value.has_value()) {
        map.values_.emplace(Endpoint{id, static_cast<int>(port)},
                            *std::move(tensor.value));
      }
    }
  }
  return map;
}

}  // namespace optfarm::graph
