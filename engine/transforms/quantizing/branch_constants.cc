#include "engine/transforms/quantizing/branch_constants.h"

#include <array>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/loop_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

// Nodes looked at before a layer for the Switch that cuts it off.
constexpr size_t kMostSources = 256;

bool ReadsParameters(const graph::Node& node) {
  const bool reads =
      graph::IsFloatProduct(node.op()) || graph::IsSumOrBias(node.op());
  return reads && node.inputs().size() == 2;
}

// What stands behind nodes that pass their input on.
Endpoint Passed(const Graph& graph, Endpoint tensor) {
  while (graph::IsIdentity(graph.node(tensor.node).op()) &&
         graph.node(tensor.node).control_inputs().empty() &&
         !graph.node(tensor.node).inputs().empty()) {
    tensor = graph.node(tensor.node).inputs()[0];
  }
  return tensor;
}

bool IsSwitch(const graph::Node& node) {
  return graph::IsSwitch(node.op()) && node.inputs().size() == 2;
}

// Whether `tensor` has no value whenever this output of a Switch of that
// condition has none.
bool IsCutOffWith(const Graph& graph, Endpoint tensor, Endpoint condition,
                  int port) {
  std::vector<Endpoint> open = {tensor};
  absl::flat_hash_set<NodeId> seen;
  for (size_t i = 0; i < open.size() && i < kMostSources; ++i) {
    const graph::Node& node = graph.node(open[i].node);
    if (IsSwitch(node) && open[i].port == port &&
        Passed(graph, node.inputs()[1]) == condition) {
      return true;
    }
    // A Merge has a value when one of its inputs has.
    const bool is_new = seen.insert(open[i].node).second;
    if (!is_new || graph::IsMerge(node.op())) continue;
    open.insert(open.end(), node.inputs().begin(), node.inputs().end());
  }
  return false;
}

}  // namespace

int ReadConstantsDirectly(Graph* graph) {
  const std::vector<bool> in_loop = NodesInLoops(*graph);
  int changed = 0;
  for (const NodeId id : graph->Ids()) {
    if (in_loop[id] || !ReadsParameters(graph->node(id))) continue;
    const Endpoint input = Passed(*graph, graph->node(id).inputs()[1]);
    const graph::Node& source = graph->node(input.node);
    if (!IsSwitch(source)) continue;
    const Endpoint constant = Passed(*graph, source.inputs()[0]);
    if (!IsConst(graph->node(constant.node)) ||
        !IsCutOffWith(*graph, graph->node(id).inputs()[0],
                      Passed(*graph, source.inputs()[1]), input.port)) {
      continue;
    }
    graph->SetInput(id, 1, constant);
    ++changed;
  }
  return changed;
}

}  // namespace optfarm::transforms
