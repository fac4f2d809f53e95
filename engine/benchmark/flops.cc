#include "engine/benchmark/flops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/shape_inference.h"

namespace optfarm::benchmark {
namespace {

using graph::PartialShape;

// Two operations for each multiply-add; nullopt when a shape is not known.
class NodeCounter {
 public:
  NodeCounter(const graph::Graph& graph, const graph::ShapeMap& shapes)
      : graph_(graph), shapes_(shapes) {}

  static bool IsConvolution(const std::string& op) {
    return op == "Conv2D" || absl::StartsWith(op, "QuantizedConv2D");
  }
  static bool IsMatMul(const std::string& op) {
    return op == "MatMul" || absl::StartsWith(op, "QuantizedMatMul");
  }
  static bool IsHeavy(const std::string& op) {
    return IsConvolution(op) || IsMatMul(op) || op == "DepthwiseConv2dNative" ||
           absl::StartsWith(op, "QuantizedDepthwiseConv2D");
  }

  std::optional<double> Count(graph::NodeId id) const {
    const graph::Node& node = graph_.node(id);
    const std::optional<int64_t> out = shapes_.Of({id, 0}).elements();
    if (!out || node.inputs().size() < 2) return std::nullopt;
    if (IsMatMul(node.op())) return MatMul(node, *out);
    const PartialShape& filter = shapes_.Of(node.inputs()[1]);
    if (!filter.is_static() || filter.rank() != 4) return std::nullopt;
    double per_output = static_cast<double>(filter.dim(0)) *
                        static_cast<double>(filter.dim(1)) * 2;
    if (IsConvolution(node.op())) {
      per_output *= static_cast<double>(filter.dim(2));
    }
    return static_cast<double>(*out) * per_output;
  }

 private:
  std::optional<double> MatMul(const graph::Node& node, int64_t out) const {
    const PartialShape& a = shapes_.Of(node.inputs()[0]);
    if (!a.has_rank() || a.rank() != 2) return std::nullopt;
    const bool transposed =
        graph::GetBoolOr(node.def(), "transpose_a", false).value_or(false);
    const int64_t depth = a.dim(transposed ? 0 : 1);
    if (depth < 0) return std::nullopt;
    return static_cast<double>(out) * static_cast<double>(depth) * 2;
  }

  const graph::Graph& graph_;
  const graph::ShapeMap& shapes_;
};

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
  const NodeCounter counter(graph, shapes);
  FlopCount count;
  for (const graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (!needed[id] || !NodeCounter::IsHeavy(node.op())) continue;
    if (const std::optional<double> flops = counter.Count(id)) {
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
