#include "engine/benchmark/flops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"
#include "engine/graph/shapes/multiply_adds.h"

namespace optfarm::benchmark {
namespace {

// Two operations for each multiply-add; nullopt when a shape is not known.
std::optional<double> FlopsOf(const graph::Node& node,
                              const graph::ShapeMap& shapes, graph::NodeId id,
                              graph::MultiplyAddsFunction multiply_adds) {
  std::vector<graph::PartialShape> inputs;
  for (const graph::Endpoint& input : node.inputs()) {
    inputs.push_back(shapes.Of(input));
  }
  const std::optional<double> count = multiply_adds(
      graph::NodeShapes(node.def(), std::move(inputs), shapes.Of({id, 0})));
  return count.has_value() ? std::optional<double>(2 * *count) : std::nullopt;
}

// Largest first; equal ones by name.
std::vector<OpFlops> SumByOp(const std::vector<NodeFlops>& nodes) {
  std::map<std::string, OpFlops> by_op;
  for (const NodeFlops& node : nodes) {
    OpFlops& op = by_op[node.op];
    op.op = node.op;
    ++op.nodes;
    op.flops += node.flops;
  }
  std::vector<OpFlops> ops;
  for (auto& [name, op] : by_op) ops.push_back(std::move(op));
  std::stable_sort(
      ops.begin(), ops.end(),
      [](const OpFlops& a, const OpFlops& b) { return a.flops > b.flops; });
  return ops;
}

}  // namespace

absl::StatusOr<FlopCount> CountFlops(const graph::Graph& graph,
                                     const graph::GraphIo& io) {
  graph::ShapeOptions options;
  std::vector<graph::NodeId> fed, roots;
  for (const graph::GraphTensor& input : io.inputs) {
    fed.push_back(input.tensor.node);
    options.feeds[input.tensor] = input.shape;
  }
  for (const graph::GraphTensor& output : io.outputs) {
    roots.push_back(output.tensor.node);
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           graph::InferShapes(graph, options));
  const std::vector<bool> needed = graph::ReachableFrom(graph, roots, fed);
  FlopCount count;
  for (const graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    const graph::MultiplyAddsFunction multiply_adds =
        graph::RowOf(node.op()).multiply_adds;
    if (!needed[id] || multiply_adds == nullptr) continue;
    if (const auto flops = FlopsOf(node, shapes, id, multiply_adds)) {
      count.flops += *flops;
      count.nodes.push_back({node.name(), node.op(), *flops});
    } else {
      ++count.unknown_nodes;
    }
  }
  count.ops = SumByOp(count.nodes);
  return count;
}

absl::Duration LeastRunTime(const FlopCount& count, double gflops) {
  return absl::Seconds(count.flops / (gflops * 1e9));
}

}  // namespace optfarm::benchmark
