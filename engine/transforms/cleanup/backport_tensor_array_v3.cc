// backport_tensor_array_v3: turns the TensorArray ops with resource handles
// into those of the version before, whose handles are strings and which have no
// flow output.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/loop_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

bool MakesArray(const graph::Node& node) {
  return node.op() == "TensorArrayV3" || node.op() == "TensorArrayGradV3";
}

bool UsesArray(const graph::Node& node) {
  static constexpr absl::string_view kOps[] = {
      "TensorArrayWriteV3",   "TensorArrayReadV3",   "TensorArrayGatherV3",
      "TensorArrayScatterV3", "TensorArrayConcatV3", "TensorArraySplitV3",
      "TensorArraySizeV3",    "TensorArrayCloseV3"};
  return std::find(std::begin(kOps), std::end(kOps), node.op()) !=
         std::end(kOps);
}

// Ops through which a handle gets into branches and loops.
bool PassesHandles(const graph::Node& node) {
  static constexpr absl::string_view kOps[] = {
      "Identity", "Switch", "Merge", "Enter", "Exit", "NextIteration"};
  return std::find(std::begin(kOps), std::end(kOps), node.op()) !=
         std::end(kOps);
}

void BecomeVersion2(graph::Node* node) {
  node->mutable_def()->set_op(
      absl::StrCat(absl::StripSuffix(node->op(), "V3"), "V2"));
}

// The second output only carried the order of operations. Its consumers get a
// number instead.
absl::Status ReplaceFlow(NodeId id, bool is_in_loop,
                         const TransformContext& context, Graph* graph) {
  const std::string& name = graph->node(id).name();
  for (const auto& names : {context.inputs(), context.outputs()}) {
    for (const graph::TensorName& tensor : names) {
      if (tensor.node == name && tensor.port == 1) {
        return absl::FailedPreconditionError(
            absl::StrCat("'", ToString(tensor),
                         "' is an input or output of the graph, but "
                         "the flow output of a TensorArray goes"));
      }
    }
  }
  std::vector<NodeId> controls;
  if (is_in_loop) controls.push_back(id);
  tensorflow::NodeDef flow =
      MakeScalarConst(absl::StrCat(name, "/replacement_flow_node"), 1.0f);
  flow.set_device(graph->node(id).device());
  const NodeId replacement = graph->Add(std::move(flow), {}, controls, id);
  graph->RedirectUses({id, 1}, {replacement, 0});
  return absl::OkStatus();
}

// Handles become strings, in all nodes that pass them on too. TensorFlow leaves
// those nodes' types, and with them a graph that does not load.
void RetypeHandles(const std::vector<NodeId>& arrays, Graph* graph) {
  std::vector<graph::Endpoint> handles;
  for (NodeId id : arrays) handles.push_back({id, 0});
  while (!handles.empty()) {
    const graph::Endpoint handle = handles.back();
    handles.pop_back();
    for (const graph::Use& use : graph->UsesOf(handle)) {
      graph::Node* consumer = graph->mutable_node(use.consumer);
      const absl::StatusOr<tensorflow::DataType> type =
          graph::GetTypeOr(consumer->def(), "T", tensorflow::DT_INVALID);
      if (!PassesHandles(*consumer) || !type.ok() ||
          *type != tensorflow::DT_RESOURCE) {
        continue;
      }
      graph::SetType(consumer->mutable_def(), "T", tensorflow::DT_STRING);
      handles.push_back({use.consumer, 0});
      if (graph::IsSwitch(consumer->op())) handles.push_back({use.consumer, 1});
    }
  }
}

absl::Status BackportTensorArrayV3(Graph* graph, TransformContext* context) {
  const std::vector<bool> in_loop = NodesInLoops(*graph);
  std::vector<NodeId> arrays;
  for (NodeId id : graph->Ids()) {
    graph::Node* node = graph->mutable_node(id);
    if (MakesArray(*node)) {
      OPTFARM_RETURN_IF_ERROR(ReplaceFlow(id, in_loop[id], *context, graph));
      arrays.push_back(id);
      // A check that version 2 does not have.
      node->mutable_def()->mutable_attr()->erase("identical_element_shapes");
    } else if (!UsesArray(*node)) {
      continue;
    }
    BecomeVersion2(node);
    context->CountChange();
  }
  RetypeHandles(arrays, graph);
  return absl::OkStatus();
}

}  // namespace

TransformDef BackportTensorArrayV3Transform() {
  return {.name = "backport_tensor_array_v3",
          .summary =
              "Turns TensorArray ops of version 3 into version 2 for old "
              "runtimes.",
          .parameters = {},
          .run = BackportTensorArrayV3};
}

}  // namespace optfarm::transforms
