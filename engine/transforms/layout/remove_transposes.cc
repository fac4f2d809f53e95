// remove_transposes: nodes that can work with their axes in any order work in
// the order of their neighbours, so that no Transpose is needed between them:
//
//   Transpose -> Conv2D -> Transpose -> Relu -> Transpose -> Conv2D ->
//   Transpose becomes Transpose -> Conv2D -> Relu -> Conv2D -> Transpose
//
// That is what models from formats with channels first consist of, where
// convolutions want channels last. Inputs and outputs keep their order, other
// tensors may not. Sums of floats over several axes may round differently, all
// else gives the same bits.

#include <vector>

#include "base/status_macros.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/layout/layout_choice.h"
#include "engine/transforms/layout/turned_graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

// Graphs beyond this are left alone: costs have to fit into 62 bits.
constexpr int kMostLayoutNodes = 1 << 20;
// Each round makes the graph cheaper; a few are enough.
constexpr int kMostLayoutRounds = 32;

// One round. False: there was nothing to gain.
absl::StatusOr<bool> Improve(graph::Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const auto turned,
                           TurnedGraph::Create(graph, context));
  for (const Permutation& turn : FindSparableTurns(*turned)) {
    const LayoutStates states = ChooseStates(*turned, turn);
    if (states.empty()) continue;
    OPTFARM_RETURN_IF_ERROR(turned->Apply(states, /*reshapes=*/false));
    return true;
  }
  return false;
}

absl::Status MergeTransposes(bool reshapes, graph::Graph* graph,
                             TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const auto turned,
                           TurnedGraph::Create(graph, context));
  return turned->Apply({}, reshapes);
}

absl::Status RemoveTransposes(graph::Graph* graph, TransformContext* context) {
  if (graph->node_count() > kMostLayoutNodes) {
    context->Warn("the graph is too large for remove_transposes");
    return absl::OkStatus();
  }
  bool has_transpose = false;
  for (graph::NodeId id : graph->Ids()) {
    has_transpose |= graph::IsTranspose(graph->node(id).op());
  }
  if (!has_transpose) return absl::OkStatus();
  // Neighbouring ones become one, those of constants none.
  OPTFARM_RETURN_IF_ERROR(MergeTransposes(/*reshapes=*/false, graph, context));
  bool may_gain = true;
  for (int round = 0; round < kMostLayoutRounds && may_gain; ++round) {
    OPTFARM_ASSIGN_OR_RETURN(may_gain, Improve(graph, context));
  }
  return MergeTransposes(/*reshapes=*/true, graph, context);
}

}  // namespace

TransformDef RemoveTransposesTransform() {
  return {.name = "remove_transposes",
          .summary =
              "Lets nodes work in the order of axes of their neighbours, so "
              "that Transposes between them are not needed.",
          .parameters = {},
          .run = RemoveTransposes};
}

}  // namespace optfarm::transforms
