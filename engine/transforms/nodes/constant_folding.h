// What of a graph is known before it runs, and its value: the analysis behind
// fold_constants.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_CONSTANT_FOLDING_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_CONSTANT_FOLDING_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::transforms {

struct ConstantAnalysisOptions {
  // Nodes that are not constant whatever their inputs are.
  absl::flat_hash_set<std::string> exclude_ops;
  absl::flat_hash_set<std::string> exclude_nodes;
};

// Finds the nodes whose outputs do not depend on anything that is only known
// when the graph runs, and evaluates them with the runtime's kernels.
class ConstantAnalysis {
 public:
  // Values of shape ops (Shape, ShapeN, Rank, Size) whose inputs' shapes are
  // known without running the graph, by output.
  using KnownValues = absl::flat_hash_map<graph::Endpoint, runtime::Tensor>;

  // `order` is the graph's execution order; `known` as above.
  // OWNERSHIP: the graph outlives the analysis and is not changed meanwhile.
  ConstantAnalysis(const graph::Graph& graph,
                   const std::vector<graph::NodeId>& order, KnownValues known,
                   const ConstantAnalysisOptions& options);

  // Whether all outputs of the node are constant.
  bool IsConstant(graph::NodeId id) const { return is_constant_[id]; }

  // The value of an output of a constant node. Intermediate values are kept
  // for later calls.
  // ERRORS: those of the kernels, with the node's name.
  absl::StatusOr<runtime::Tensor> Evaluate(graph::Endpoint endpoint);

  // The nodes that are not constant whose execution the constant node waits
  // for, through control edges anywhere below it, in the order of the graph.
  std::vector<graph::NodeId> WaitsFor(graph::NodeId id) const;

 private:
  bool CanBeConstant(const graph::Node& node) const;
  absl::Status EvaluateNode(graph::NodeId id);

  const graph::Graph& graph_;
  const ConstantAnalysisOptions& options_;
  KnownValues known_;
  std::vector<bool> is_constant_;
  absl::flat_hash_map<graph::NodeId, std::vector<runtime::Tensor>> values_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_CONSTANT_FOLDING_H_
