// remove_training_nodes: takes out what only training or debugging needs.
// Unlike remove_nodes it knows what each op does, and what of its edges a
// condition or a loop depends on: a node that says which branch was taken
// stays.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/graph.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/branch_conditions.h"
#include "engine/transforms/nodes/dropout.h"
#include "engine/transforms/nodes/unused_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

// Edges that one removed node may turn into.
constexpr size_t kMostNewEdges = 64;

// Ops whose first output is their first input (IdentityN: each is its own).
const std::vector<std::string>& IdentityOps() {
  static const auto* const kOps = new std::vector<std::string>{
      "Identity",        "IdentityN",     "StopGradient",
      "PreventGradient", "CheckNumerics", "Print"};
  return *kOps;
}

const std::vector<std::string>& FakeQuantOps() {
  static const auto* const kOps = new std::vector<std::string>{
      "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars",
      "FakeQuantWithMinMaxVarsPerChannel"};
  return *kOps;
}

// Ops to remove; "dropout" stands for its many nodes.
absl::StatusOr<absl::flat_hash_set<std::string>> ReadOps(
    const TransformArguments& arguments) {
  std::vector<std::string> all = IdentityOps();
  all.push_back("Assert");
  all.push_back("dropout");
  const std::vector<std::string> given = arguments.Strings("op");
  absl::flat_hash_set<std::string> ops(given.begin(), given.end());
  for (const std::string& op : given) {
    if (std::find(all.begin(), all.end(), op) == all.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter 'op' has the value '", op, "'; it may be ",
          absl::StrJoin(all, ", "), ". remove_nodes removes any op"));
    }
  }
  if (given.empty()) ops.insert(all.begin(), all.end());
  if (arguments.Bool("fake_quant")) {
    ops.insert(FakeQuantOps().begin(), FakeQuantOps().end());
  }
  return ops;
}

bool IsMerge(const graph::Node& node) { return graph::IsMerge(node.op()); }

bool IsSwitch(const graph::Node& node) {
  return graph::IsSwitch(node.op()) || node.op() == "_SwitchN";
}

void DropControlEdge(NodeId source, NodeId consumer, Graph* graph) {
  const std::vector<NodeId> old(graph->node(consumer).control_inputs().begin(),
                                graph->node(consumer).control_inputs().end());
  graph->ClearControlInputs(consumer);
  for (NodeId control : old) {
    if (control != source) graph->AddControlInput(consumer, control);
  }
}

class Remover {
 public:
  Remover(absl::flat_hash_set<std::string> ops, TransformContext* context,
          Graph* graph)
      : ops_(std::move(ops)), context_(context), graph_(graph) {}

  absl::Status Run() {
    if (ops_.contains("dropout")) RemoveDropout();
    OPTFARM_RETURN_IF_ERROR(Analyse());
    if (ops_.contains("Assert")) {
      RemoveAsserts();
      OPTFARM_RETURN_IF_ERROR(Analyse());
      RemoveGuards();
    }
    for (NodeId id : graph_->Ids()) {
      if (graph_->Has(id)) TryToBypass(id);
    }
    ForgetColocation();
    return absl::OkStatus();
  }

 private:
  absl::Status Analyse() {
    OPTFARM_ASSIGN_OR_RETURN(conditions_, BranchConditions::Of(*graph_));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                             graph::DataflowOrder(*graph_));
    has_effect_.assign(static_cast<size_t>(graph_->id_limit()), false);
    for (NodeId id : order) {
      const graph::Node& node = graph_->node(id);
      bool has = graph::IsStateful(node.op()) &&
                 !absl::StartsWith(node.op(), "Placeholder") &&
                 !absl::StartsWith(node.op(), "Random");
      for (const Endpoint& e : node.inputs()) has = has || has_effect_[e.node];
      for (NodeId c : node.control_inputs()) has = has || has_effect_[c];
      has_effect_[id] = has;
    }
    return absl::OkStatus();
  }

  void Count(const std::string& name, int64_t also_removed = 0) {
    removed_names_.insert(name);
    context_->CountChange(1 + also_removed);
  }

  // The product becomes an Identity, which goes with the others where it can.
  void RemoveDropout() {
    for (NodeId id : graph_->Ids()) {
      if (!graph_->Has(id)) continue;
      const std::string name = graph_->node(id).name();
      const absl::StatusOr<std::optional<Endpoint>> x =
          FindDropout(*graph_, id);
      if (!x.ok()) context_->Skip(name, x.status().message());
      if (!x.ok() || !x->has_value() || context_->IsInput(name)) continue;
      std::vector<NodeId> freed;
      for (const Endpoint& e : graph_->node(id).inputs()) {
        freed.push_back(e.node);
      }
      graph_->mutable_node(id)->mutable_def()->set_op("Identity");
      graph_->SetInputs(id, {**x});
      context_->CountChange(
          1 + RemoveUnusedWithInputs(std::move(freed), *context_, graph_));
      dropouts_.insert(id);
    }
  }

  void RemoveAsserts() {
    for (NodeId id : graph_->Ids()) {
      if (!graph_->Has(id) || graph_->node(id).op() != "Assert") continue;
      const graph::Node& node = graph_->node(id);
      const std::string name = node.name();
      if (context_->IsInputOrOutput(name)) {
        context_->Skip(name, "it is an input or output of the graph");
        continue;
      }
      const std::vector<NodeId> controls(node.control_inputs().begin(),
                                         node.control_inputs().end());
      const std::vector<graph::Use> uses(node.uses().begin(),
                                         node.uses().end());
      for (const graph::Use& use : uses) {
        if (!conditions_.ImpliedByInputs(*graph_, id, use.consumer)) continue;
        DropControlEdge(id, use.consumer, graph_);
        Inherit(controls, use.consumer);
        guards_.push_back(use.consumer);
      }
      if (!graph_->node(id).uses().empty()) {
        context_->Skip(
            name, absl::StrCat(
                      "it tells '",
                      graph_->node(graph_->node(id).uses()[0].consumer).name(),
                      "' which branch of a condition was taken"));
        continue;
      }
      Count(name, RemoveUnusedWithInputs({id}, *context_, graph_) - 1);
    }
  }

  // What is left of the condition that guarded an Assert: nodes without effect
  // that others only wait for.
  void RemoveGuards() {
    absl::flat_hash_set<NodeId> seen;
    while (!guards_.empty()) {
      const NodeId id = guards_.back();
      guards_.pop_back();
      if (!graph_->Has(id) || !seen.insert(id).second) continue;
      const graph::Node& node = graph_->node(id);
      if (!graph::IsIdentity(node.op()) && !graph::IsNoOp(node.op()) &&
          !IsMerge(node)) {
        continue;
      }
      const std::vector<graph::Use> uses(node.uses().begin(),
                                         node.uses().end());
      for (const graph::Use& use : uses) {
        guards_.push_back(use.consumer);
        if (use.is_control() && !has_effect_[id] &&
            conditions_.ImpliedByInputs(*graph_, id, use.consumer)) {
          DropControlEdge(id, use.consumer, graph_);
        }
      }
      if (!uses.empty()) {
        context_->CountChange(RemoveUnusedWithInputs({id}, *context_, graph_));
      }
    }
  }

  // Lets the consumer wait for what a removed node waited for, where that is
  // more than order among nodes without effect.
  void Inherit(const std::vector<NodeId>& controls, NodeId consumer) {
    for (NodeId control : controls) {
      if (has_effect_[control] ||
          !conditions_.ImpliedByInputs(*graph_, control, consumer)) {
        graph_->AddControlInput(consumer, control);
      }
    }
  }

  // Why the node has to stay; "" when it can go.
  std::string WhyKept(const graph::Node& node) const {
    if (context_->IsInputOrOutput(node.name())) {
      return "it is an input or output of the graph";
    }
    const bool is_list = node.op() == "IdentityN";
    size_t data_uses = 0;
    for (const graph::Use& use : node.uses()) {
      const graph::Node& consumer = graph_->node(use.consumer);
      const size_t input = static_cast<size_t>(std::max(use.port, 0));
      if (use.port > 0 && (!is_list || input >= node.inputs().size())) {
        return "an output other than its first is used";
      }
      const Endpoint source = node.inputs()[input];
      if (graph_->node(source.node).name() == node.name()) {
        return "it reads itself";
      }
      if (use.is_control() &&
          std::any_of(node.inputs().begin(), node.inputs().end(),
                      [&](const Endpoint& e) {
                        return IsSwitch(graph_->node(e.node));
                      })) {
        return absl::StrCat("it tells '", consumer.name(),
                            "' which branch of a condition was taken");
      }
      if (!use.is_control()) ++data_uses;
      if (IsMerge(consumer) && !node.control_inputs().empty()) {
        return absl::StrCat("it waits before '", consumer.name(),
                            "', which must not");
      }
      if (ReadsReference(source)) {
        return "it reads a variable at a moment of its own";
      }
    }
    if (data_uses * node.control_inputs().size() > kMostNewEdges) {
      return "it gathers many control edges";
    }
    return "";
  }

  bool ReadsReference(Endpoint source) const {
    const graph::Node& node = graph_->node(source.node);
    const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
    if (op_def == nullptr) return false;
    const auto types = graph::OutputTypes(*op_def, node.def());
    const auto port = static_cast<size_t>(source.port);
    return types.ok() && port < types->size() &&
           graph::IsRefType((*types)[port]);
  }

  void TryToBypass(NodeId id) {
    const graph::Node& node = graph_->node(id);
    const bool is_dropout = dropouts_.contains(id);
    if ((!ops_.contains(node.op()) && !is_dropout) || node.op() == "Assert" ||
        node.inputs().empty()) {
      return;
    }
    const std::string name = node.name();
    const std::string kept = WhyKept(node);
    if (!kept.empty()) {
      if (!is_dropout) context_->Skip(name, kept);
      return;
    }
    const std::vector<Endpoint> inputs(node.inputs().begin(),
                                       node.inputs().end());
    const std::vector<NodeId> controls(node.control_inputs().begin(),
                                       node.control_inputs().end());
    const std::vector<graph::Use> uses(node.uses().begin(), node.uses().end());
    for (const graph::Use& use : uses) {
      if (!use.is_control()) {
        graph_->SetInput(use.consumer, use.input,
                         inputs[static_cast<size_t>(use.port)]);
      }
    }
    std::vector<NodeId> freed;
    for (const Endpoint& e : inputs) freed.push_back(e.node);
    WaitForInputs(id, inputs);
    for (const graph::Use& use : uses) Inherit(controls, use.consumer);
    graph_->Remove(id);
    // Only what nothing read but this node: ranges, texts to print.
    freed.erase(freed.begin());
    Count(name, RemoveUnusedWithInputs(std::move(freed), *context_, graph_));
  }

  // Lets what waited for the node wait for the nodes it read.
  void WaitForInputs(NodeId id, const std::vector<Endpoint>& inputs) {
    std::vector<NodeId> waiting;
    for (const graph::Use& use : graph_->node(id).uses()) {
      waiting.push_back(use.consumer);
    }
    const size_t count =
        graph_->node(id).op() == "IdentityN" ? inputs.size() : size_t{1};
    graph_->RedirectControlUses(id, inputs[0].node);
    for (NodeId consumer : waiting) {
      for (size_t i = 1; i < count; ++i) {
        graph_->AddControlInput(consumer, inputs[i].node);
      }
    }
  }

  // TensorFlow refuses a graph whose nodes are to be placed with others that
  // are gone.
  void ForgetColocation() {
    for (NodeId id : graph_->Ids()) {
      auto* attributes =
          graph_->mutable_node(id)->mutable_def()->mutable_attr();
      const auto found = attributes->find("_class");
      if (found == attributes->end()) continue;
      auto* classes = found->second.mutable_list()->mutable_s();
      classes->erase(
          std::remove_if(classes->begin(), classes->end(),
                         [&](const std::string& text) {
                           return absl::StartsWith(text, "loc:@") &&
                                  removed_names_.contains(text.substr(5));
                         }),
          classes->end());
      if (classes->empty()) attributes->erase(found);
    }
  }

  const absl::flat_hash_set<std::string> ops_;
  TransformContext* context_;
  Graph* graph_;
  BranchConditions conditions_;
  // Whether a node, or anything above it, does more than compute. By number.
  std::vector<bool> has_effect_;
  absl::flat_hash_set<NodeId> dropouts_;
  // Nodes that waited for an Assert, and what follows them.
  std::vector<NodeId> guards_;
  absl::flat_hash_set<std::string> removed_names_;
};

absl::Status RemoveTrainingNodes(Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(absl::flat_hash_set<std::string> ops,
                           ReadOps(context->arguments()));
  return Remover(std::move(ops), context, graph).Run();
}

}  // namespace

TransformDef RemoveTrainingNodesTransform() {
  return {.name = "remove_training_nodes",
          .summary =
              "Removes dropout, checks, prints and pass-through nodes, unless "
              "conditionals or loops need them.",
          .parameters =
              {{.name = "op",
                .help = "Removes only this: Identity, IdentityN, "
                        "StopGradient, PreventGradient, CheckNumerics, Print, "
                        "Assert or dropout. Default: all of them.",
                .repeated = true},
               {.name = "fake_quant",
                .type = ParameterType::kBool,
                .help = "Also removes FakeQuantWithMinMax nodes; the trained "
                        "ranges are lost.",
                .default_value = "false"}},
          .run = RemoveTrainingNodes};
}

}  // namespace optfarm::transforms
