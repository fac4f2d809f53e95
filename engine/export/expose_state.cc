#include "engine/export/expose_state.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::exporting {
namespace {

using graph::Graph;
using graph::NodeId;

// The nodes of one variable.
struct Variable {
  NodeId handle = graph::kNoNode;
  std::vector<NodeId> reads, stores;
};

absl::Status Refuse(const Graph& graph, NodeId id, absl::string_view reason) {
  return absl::FailedPreconditionError(
      absl::StrCat("its state cannot become inputs and outputs: variable '",
                   graph.node(id).name(), "' ", reason));
}

absl::StatusOr<Variable> FindUses(const Graph& graph, NodeId handle) {
  Variable variable;
  variable.handle = handle;
  for (const graph::Use& use : graph.node(handle).uses()) {
    const graph::Node& user = graph.node(use.consumer);
    if (user.op() == "ReadVariableOrInitial" && user.inputs().size() == 2) {
      variable.reads.push_back(use.consumer);
    } else if (graph::HasRole(user.op(), graph::OpRole::kAssign) &&
               user.inputs().size() == 2) {
      variable.stores.push_back(use.consumer);
    } else {
      return Refuse(
          graph, handle,
          absl::StrCat("is used by '", user.name(), "' (", user.op(), ")"));
    }
  }
  if (variable.stores.size() > 1) {
    return Refuse(graph, handle, "is stored more than once");
  }
  return variable;
}

absl::StatusOr<runtime::Tensor> InitialOf(const Graph& graph,
                                          const Variable& variable) {
  const graph::Node& read = graph.node(variable.reads[0]);
  NodeId source = read.inputs()[1].node;
  if (graph::IsIdentity(graph.node(source).op()) &&
      !graph.node(source).inputs().empty()) {
    source = graph.node(source).inputs()[0].node;
  }
  if (!transforms::IsConst(graph.node(source))) {
    return Refuse(graph, variable.handle,
                  "has an initial value that is not constant");
  }
  return transforms::ConstValue(graph.node(source));
}

tensorflow::NodeDef MakeInput(const std::string& name,
                              const runtime::Tensor& initial) {
  tensorflow::NodeDef def;
  def.set_op("Placeholder");
  def.set_name(name);
  graph::SetType(&def, "dtype", initial.dtype());
  auto* shape = (*def.mutable_attr())["shape"].mutable_shape();
  for (const int64_t dim : initial.shape().dims()) {
    shape->add_dim()->set_size(dim);
  }
  return def;
}

// Nothing waits for the node any more.
void Release(NodeId id, Graph* graph) {
  std::vector<NodeId> waiting;
  for (const graph::Use& use : graph->node(id).uses()) {
    if (use.is_control()) waiting.push_back(use.consumer);
  }
  for (const NodeId consumer : waiting) {
    const auto inputs = graph->node(consumer).control_inputs();
    const std::vector<NodeId> all(inputs.begin(), inputs.end());
    graph->ClearControlInputs(consumer);
    for (const NodeId other : all) {
      if (other != id) graph->AddControlInput(consumer, other);
    }
  }
}

// What the model declares, with room for more.
struct Positions {
  std::string format;
  int inputs = 0, outputs = 0;
};

// REQUIRES: the variable is read and stored.
absl::StatusOr<ExposedState> Expose(const Variable& variable,
                                    const std::string& name, Positions* next,
                                    Graph* graph) {
  ExposedState state;
  OPTFARM_ASSIGN_OR_RETURN(state.initial, InitialOf(*graph, variable));
  state.input = graph->FreeName(absl::StrCat("state_in/", name));
  tensorflow::NodeDef input = MakeInput(state.input, state.initial);
  if (!next->format.empty()) {
    graph::DeclareInput(next->format, next->inputs++, state.input, {}, &input);
  }
  const NodeId placeholder = graph->Add(std::move(input), {});
  for (const NodeId read : variable.reads) {
    graph->RedirectUses({read, 0}, {placeholder, 0});
  }
  tensorflow::NodeDef output;
  output.set_op("Identity");
  state.output = graph->FreeName(absl::StrCat("state_out/", name));
  output.set_name(state.output);
  graph::SetType(&output, "T", state.initial.dtype());
  if (!next->format.empty()) {
    graph::DeclareOutput(next->format, next->outputs++, state.output, {},
                         &output);
  }
  graph->Add(std::move(output), {graph->node(variable.stores[0]).inputs()[1]});
  return state;
}

void RemoveNodes(const Variable& variable, Graph* graph) {
  std::vector<NodeId> gone = variable.stores;
  gone.insert(gone.end(), variable.reads.begin(), variable.reads.end());
  gone.push_back(variable.handle);
  for (const NodeId id : gone) Release(id, graph);
  graph->RemoveAll(gone);
}

// Whether all elements have the same bytes.
bool IsUniform(const runtime::Tensor& tensor) {
  const auto* bytes = static_cast<const char*>(tensor.raw());
  const auto count = static_cast<size_t>(tensor.num_elements());
  if (count == 0) return true;
  const size_t size = static_cast<size_t>(tensor.TotalBytes()) / count;
  return std::equal(bytes + size, bytes + count * size, bytes);
}

std::string DescribeInitial(const runtime::Tensor& initial) {
  constexpr int64_t kMostShown = 4096;
  if (initial.dtype() == tensorflow::DT_STRING) return "as the model has it";
  std::vector<std::string> numbers;
  const bool is_uniform = IsUniform(initial);
  const int64_t count = is_uniform
                            ? std::min<int64_t>(1, initial.num_elements())
                            : std::min(kMostShown, initial.num_elements());
  if (initial.dtype() == tensorflow::DT_FLOAT) {
    for (int64_t i = 0; i < count; ++i) {
      numbers.push_back(absl::StrCat(initial.data<float>()[i]));
    }
  } else if (const auto integers = initial.AsInt64s(); integers.ok()) {
    for (int64_t i = 0; i < count; ++i) {
      numbers.push_back(absl::StrCat((*integers)[static_cast<size_t>(i)]));
    }
  } else {
    return "as the model has it";
  }
  if (is_uniform) return absl::StrJoin(numbers, "");
  return absl::StrCat("[", absl::StrJoin(numbers, " "),
                      count < initial.num_elements() ? " ...]" : "]");
}

}  // namespace

absl::StatusOr<std::vector<ExposedState>> ExposeState(Graph* graph) {
  // By name, so that the order does not depend on the graph's.
  std::map<std::pair<std::string, NodeId>, Variable> variables;
  for (const NodeId id : graph->Ids()) {
    if (!graph::HasRole(graph->node(id).op(), graph::OpRole::kResourceVariable))
      continue;
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string shared,
        graph::GetStringOr(graph->node(id).def(), "shared_name", ""));
    const std::string name =
        graph::NodeNameOf(shared.empty() ? graph->node(id).name() : shared);
    OPTFARM_ASSIGN_OR_RETURN((variables[{name, id}]), FindUses(*graph, id));
  }
  const graph::ModelInterface declared = graph::ReadModelInterface(*graph);
  Positions next = {declared.format, static_cast<int>(declared.inputs.size()),
                    static_cast<int>(declared.outputs.size())};
  std::vector<ExposedState> states;
  for (const auto& [key, variable] : variables) {
    if (!variable.reads.empty() && !variable.stores.empty()) {
      OPTFARM_ASSIGN_OR_RETURN(states.emplace_back(),
                               Expose(variable, key.first, &next, graph));
    }
    for (const NodeId read : variable.reads) {
      if (!variable.stores.empty()) break;
      graph->RedirectUses({read, 0}, graph->node(read).inputs()[1]);
    }
    RemoveNodes(variable, graph);
  }
  return states;
}

std::string DescribeState(const std::vector<ExposedState>& states) {
  return absl::StrJoin(states, "\n",
                       [](std::string* out, const ExposedState& state) {
                         absl::StrAppend(out, state.input, " <- ", state.output,
                                         " of the run before; at first ",
                                         DescribeInitial(state.initial));
                       });
}

}  // namespace optfarm::exporting
