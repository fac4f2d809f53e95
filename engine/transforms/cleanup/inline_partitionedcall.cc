// inline_partitionedcall: puts the body of a function in the place of its call,
// calls inside of it included.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/function_call.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

// A chain of calls that is longer calls itself.
constexpr int kMostDepth = 64;
// A few functions that call one another twice make a graph of any size.
constexpr int64_t kMostNodes = int64_t{1} << 20;
constexpr uint64_t kMostBytes = uint64_t{2} << 30;

bool IsCall(const graph::Node& node) {
  return graph::HasRole(node.op(), graph::OpRole::kCall);
}

class Inliner {
 public:
  Inliner(TransformContext* context, Graph* graph)
      : context_(context), graph_(graph) {
    for (const auto& function : graph->library().function()) {
      functions_[function.signature().name()] = &function;
    }
  }

  absl::Status Run() {
    for (NodeId id : graph_->Ids()) {
      if (IsCall(graph_->node(id))) calls_.push_back({id, 1});
    }
    for (size_t i = 0; i < calls_.size(); ++i) {
      const std::string name = graph_->node(calls_[i].node).name();
      if (context_->IsInput(name)) {
        context_->Skip(name, "it is fed, so that it is never called");
        continue;
      }
      OPTFARM_RETURN_IF_ERROR(Annotate(Inline(calls_[i].node, calls_[i].depth),
                                       absl::StrCat("node '", name, "'")));
      context_->CountChange();
    }
    return absl::OkStatus();
  }

 private:
  struct Call {
    NodeId node = graph::kNoNode;
    int depth = 0;
  };

  absl::StatusOr<FunctionCall> ReadCall(const graph::Node& node, int depth) {
    const tensorflow::AttrValue* f = node.FindAttr("f");
    if (f == nullptr || !f->has_func()) {
      return absl::NotFoundError("it has no attribute 'f' with a function");
    }
    const auto function = functions_.find(f->func().name());
    if (function == functions_.end()) {
      return absl::NotFoundError(absl::StrCat(
          "its function '", f->func().name(), "' is not in the library"));
    }
    if (depth > kMostDepth) {
      return absl::InvalidArgumentError(absl::StrCat(
          "function '", f->func().name(), "' is called by ", kMostDepth,
          " calls inside one another; does it call "
          "itself?"));
    }
    added_nodes_ += function->second->node_def_size();
    added_bytes_ += function->second->ByteSizeLong();
    if (added_nodes_ > kMostNodes || added_bytes_ > kMostBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the functions' bodies have more than ", kMostNodes,
                       " nodes or ", kMostBytes, " bytes"));
    }
    return MakeFunctionCall(*function->second, f->func(),
                            static_cast<int>(node.inputs().size()),
                            graph_->library());
  }

  absl::Status Inline(NodeId id, int depth) {
    const graph::Node& node = graph_->node(id);
    OPTFARM_ASSIGN_OR_RETURN(const FunctionCall call, ReadCall(node, depth));
    const std::vector<Endpoint> inputs(node.inputs().begin(),
                                       node.inputs().end());
    for (const Endpoint& input : inputs) {
      if (input.node == id) {
        return absl::InvalidArgumentError("it reads its own output");
      }
    }
    const std::vector<NodeId> ids = AddBody(id, inputs, call, depth);
    std::vector<Endpoint> outputs;
    for (const BodySource& source : call.outputs) {
      outputs.push_back(Resolve(source, inputs, ids));
    }
    return ReplaceCall(id, call, outputs, FindEffects(call, ids, outputs));
  }

  static Endpoint Resolve(const BodySource& source,
                          const std::vector<Endpoint>& inputs,
                          const std::vector<NodeId>& ids) {
    if (source.node < 0) return inputs[source.port];
    return {ids[source.node], source.port};
  }

  std::vector<NodeId> AddBody(NodeId id, const std::vector<Endpoint>& inputs,
                              const FunctionCall& call, int depth) {
    const std::string prefix = absl::StrCat(graph_->node(id).name(), "/");
    std::vector<NodeId> ids;
    for (const BodyNode& body : call.nodes) {
      tensorflow::NodeDef def = body.def;
      def.set_name(absl::StrCat(prefix, def.name()));
      ids.push_back(graph_->Add(std::move(def), {}, {}, id));
      if (IsCall(graph_->node(ids.back()))) {
        calls_.push_back({ids.back(), depth + 1});
      }
    }
    const std::vector<NodeId> controls = ControlInputs(id);
    for (size_t i = 0; i < ids.size(); ++i) {
      const BodyNode& body = call.nodes[i];
      std::vector<Endpoint> sources;
      bool is_first = true;
      for (const BodySource& source : body.inputs) {
        sources.push_back(Resolve(source, inputs, ids));
        is_first = is_first && source.node < 0;
      }
      graph_->SetInputs(ids[i], sources);
      for (const BodySource& source : body.control_inputs) {
        // An argument without tensors is nothing to wait for.
        if (source.node < 0 && source.port >= static_cast<int>(inputs.size())) {
          continue;
        }
        graph_->AddControlInput(ids[i], Resolve(source, inputs, ids).node);
        is_first = is_first && source.node < 0;
      }
      // What nothing of the body precedes waits for what the call waited for.
      for (NodeId control : is_first ? controls : std::vector<NodeId>()) {
        graph_->AddControlInput(ids[i], control);
      }
    }
    return ids;
  }

  // What has to run whenever the call is run. Functions of early versions do
  // not tell; there it is what changes something and is not read.
  std::vector<NodeId> FindEffects(const FunctionCall& call,
                                  const std::vector<NodeId>& ids,
                                  const std::vector<Endpoint>& outputs) const {
    std::vector<NodeId> effects;
    for (int index : call.effects) effects.push_back(ids[index]);
    if (!effects.empty()) return effects;
    for (NodeId id : ids) {
      bool is_returned = false;
      for (const Endpoint& output : outputs) {
        is_returned = is_returned || output.node == id;
      }
      const graph::Node& node = graph_->node(id);
      if (!is_returned && node.uses().empty() && graph::IsStateful(node.op())) {
        effects.push_back(id);
      }
    }
    return effects;
  }

  absl::Status ReplaceCall(NodeId id, const FunctionCall& call,
                           const std::vector<Endpoint>& outputs,
                           const std::vector<NodeId>& effects) {
    const std::vector<graph::Use> uses(graph_->node(id).uses().begin(),
                                       graph_->node(id).uses().end());
    const std::vector<NodeId> controls = ControlInputs(id);
    bool is_waited_for = false;
    for (const graph::Use& use : uses) {
      is_waited_for = is_waited_for || use.is_control();
      if (use.is_control()) continue;
      if (use.port >= static_cast<int>(outputs.size())) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", graph_->node(use.consumer).name(), "' reads its output ",
            use.port, ", and it has ", outputs.size()));
      }
      graph_->SetInput(use.consumer, use.input, outputs[use.port]);
      for (NodeId effect : effects) {
        graph_->AddControlInput(use.consumer, effect);
      }
      if (call.outputs[use.port].node >= 0) continue;
      // An input that is passed through waits for the call all the same.
      for (NodeId control : controls) {
        graph_->AddControlInput(use.consumer, control);
      }
    }
    const bool is_output = context_->IsOutput(graph_->node(id).name());
    if (!is_output && !is_waited_for) {
      graph_->Remove(id);
      return absl::OkStatus();
    }
    return BecomeStandIn(id, is_output, outputs, effects);
  }

  // Keeps the call's name, for a declared output or for nodes that wait for it.
  absl::Status BecomeStandIn(NodeId id, bool is_output,
                             const std::vector<Endpoint>& outputs,
                             const std::vector<NodeId>& effects) {
    tensorflow::NodeDef* def = graph_->mutable_node(id)->mutable_def();
    if (is_output && !outputs.empty()) {
      OPTFARM_ASSIGN_OR_RETURN(const std::vector<tensorflow::DataType> types,
                               graph::GetTypes(*def, "Tout"));
      if (types.size() != outputs.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("its attribute 'Tout' tells of ", types.size(),
                         " outputs, and it has ", outputs.size()));
      }
      def->clear_attr();
      def->set_op(outputs.size() == 1 ? "Identity" : "IdentityN");
      if (outputs.size() == 1) {
        graph::SetType(def, "T", types[0]);
      } else {
        graph::SetTypes(def, "T", types);
      }
      graph_->SetInputs(id, outputs);
    } else {
      def->clear_attr();
      def->set_op("NoOp");
      graph_->SetInputs(id, {});
      for (const Endpoint& output : outputs) {
        graph_->AddControlInput(id, output.node);
      }
    }
    for (NodeId effect : effects) graph_->AddControlInput(id, effect);
    return absl::OkStatus();
  }

  std::vector<NodeId> ControlInputs(NodeId id) const {
    return {graph_->node(id).control_inputs().begin(),
            graph_->node(id).control_inputs().end()};
  }

  TransformContext* context_;
  Graph* graph_;
  absl::flat_hash_map<std::string, const tensorflow::FunctionDef*> functions_;
  std::vector<Call> calls_;
  int64_t added_nodes_ = 0;
  uint64_t added_bytes_ = 0;
};

absl::Status InlinePartitionedCall(Graph* graph, TransformContext* context) {
  return Inliner(context, graph).Run();
}

}  // namespace

TransformDef InlinePartitionedcallTransform() {
  return {.name = "inline_partitionedcall",
          .summary = "Inlines function calls, to any depth.",
          .parameters = {},
          .run = InlinePartitionedCall};
}

}  // namespace optfarm::transforms
