#include "engine/transforms/nodes/weight_leftovers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/reference/catalog.h"
#include "engine/transforms/nodes/unused_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

// Whether leaving the node out changes nothing but its own outputs. Where no
// outputs are declared, any result may be one.
bool CanGo(const graph::Node& node, const TransformContext& context) {
  for (const char* op : {"Assign", "IsVariableInitialized", "ScalarSummary",
                         "HistogramSummary", "MergeSummary"}) {
    if (node.op() == op) return true;
  }
  if (context.outputs().empty()) return false;
  const runtime::KernelEntry* kernel = runtime::AllKernels().Find(node.op());
  return kernel != nullptr && kernel->is_pure;
}

class Leftovers {
 public:
  Leftovers(const TransformContext& context, Graph* graph)
      : context_(context), graph_(graph) {}

  std::optional<std::string> Remove(NodeId weights) {
    if (std::optional<std::string> obstacle = Collect(weights)) {
      return absl::StrCat("the weights stay, because ", *obstacle);
    }
    for (NodeId merge : merges_) DropInputs(merge);
    for (NodeId id : gone_) DropFromWaiting(id);
    std::vector<NodeId> candidates = {weights};
    for (NodeId id : gone_) {
      for (const Endpoint& input : graph_->node(id).inputs()) {
        candidates.push_back(input.node);
      }
    }
    graph_->RemoveAll(gone_);
    RemoveUnusedWithInputs(std::move(candidates), context_, graph_);
    return std::nullopt;
  }

 private:
  // Finds all that reads the weights, directly or not. Returns what is in the
  // way of removing it.
  std::optional<std::string> Collect(NodeId weights) {
    std::vector<NodeId> open = {weights};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      for (const graph::Use& use : graph_->node(id).uses()) {
        if (use.is_control() || found_.contains(use.consumer)) continue;
        const graph::Node& node = graph_->node(use.consumer);
        if (context_.IsInputOrOutput(node.name())) {
          return absl::StrCat("'", node.name(), "' is computed from them");
        }
        if (!CanGo(node, context_)) {
          return absl::StrCat("'", node.name(), "' (", node.op(),
                              ") uses them");
        }
        if (!LosesAllInputs(node, id)) {
          merges_.insert(use.consumer);
          continue;
        }
        merges_.erase(use.consumer);
        found_.insert(use.consumer);
        gone_.push_back(use.consumer);
        open.push_back(use.consumer);
      }
    }
    return std::nullopt;
  }

  // A summary of summaries goes with the last of them.
  bool LosesAllInputs(const graph::Node& node, NodeId lost) const {
    return node.op() != "MergeSummary" ||
           std::all_of(node.inputs().begin(), node.inputs().end(),
                       [&](const Endpoint& input) {
                         return input.node == lost ||
                                found_.contains(input.node);
                       });
  }

  void DropInputs(NodeId merge) {
    std::vector<Endpoint> kept;
    for (const Endpoint& input : graph_->node(merge).inputs()) {
      if (!found_.contains(input.node)) kept.push_back(input);
    }
    graph_->SetInputs(merge, kept);
    graph::SetInt(graph_->mutable_node(merge)->mutable_def(), "N",
                  static_cast<int64_t>(kept.size()));
  }

  // Nobody waits for the node any more.
  void DropFromWaiting(NodeId id) {
    std::vector<NodeId> waiting;
    for (const graph::Use& use : graph_->node(id).uses()) {
      if (use.is_control()) waiting.push_back(use.consumer);
    }
    for (NodeId consumer : waiting) {
      const std::vector<NodeId> controls(
          graph_->node(consumer).control_inputs().begin(),
          graph_->node(consumer).control_inputs().end());
      graph_->ClearControlInputs(consumer);
      for (NodeId control : controls) {
        if (control != id) graph_->AddControlInput(consumer, control);
      }
    }
  }

  const TransformContext& context_;
  Graph* graph_;
  absl::flat_hash_set<NodeId> found_;
  // The same, in the order in which they were found.
  std::vector<NodeId> gone_;
  // Merged summaries that keep other inputs.
  absl::flat_hash_set<NodeId> merges_;
};

}  // namespace

std::optional<std::string> RemoveWeights(NodeId weights,
                                         const TransformContext& context,
                                         Graph* graph) {
  return Leftovers(context, graph).Remove(weights);
}

}  // namespace optfarm::transforms
