#include "engine/transforms/nodes/saved_variables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/nodes/unused_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

// Inputs of SaveV2 and RestoreV2.
constexpr int kPrefix = 0;
constexpr int kNames = 1;
constexpr int kSlices = 2;

// Elements of a constant list of strings.
absl::StatusOr<std::vector<std::string>> ReadStrings(const Graph& graph,
                                                     Endpoint input) {
  const graph::Node& node = graph.node(input.node);
  if (!IsConst(node)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", node.name(), "' is not constant"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor value, ConstValue(node));
  if (value.dtype() != tensorflow::DT_STRING || value.rank() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", node.name(), "' is no list of strings"));
  }
  const absl::Span<const std::string> strings = value.flat<std::string>();
  return std::vector<std::string>(strings.begin(), strings.end());
}

tensorflow::NodeDef MakeStrings(absl::string_view name,
                                const std::vector<std::string>& strings) {
  return MakeConst(name, Tensor::FromValues<std::string>(
                             {static_cast<int64_t>(strings.size())}, strings));
}

// The restoring node that `assign` takes its value from; kNoNode for another.
// Identity nodes between say on which device the value is wanted.
Endpoint RestoredFrom(const Graph& graph, const graph::Node& assign) {
  if (assign.op() != "Assign" || assign.inputs().size() != 2) return {};
  Endpoint value = assign.inputs()[1];
  if (graph::IsIdentity(graph.node(value.node).op()) &&
      graph.node(value.node).inputs().size() == 1) {
    value = graph.node(value.node).inputs()[0];
  }
  const graph::Node& restore = graph.node(value.node);
  if (restore.op() != "RestoreV2" || restore.inputs().size() != 3) return {};
  return value;
}

// What waits for the values of `restore` to be assigned.
std::vector<NodeId> WaitForRestored(const Graph& graph, NodeId restore) {
  std::vector<NodeId> waiting;
  for (NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (!graph::IsNoOp(node.op())) continue;
    for (NodeId control : node.control_inputs()) {
      if (RestoredFrom(graph, graph.node(control)).node == restore) {
        waiting.push_back(id);
        break;
      }
    }
  }
  return waiting;
}

// Adds names to the constant list that a SaveV2 reads.
absl::Status AppendStrings(NodeId save, int input,
                           const std::vector<std::string>& added,
                           const TransformContext& context, Graph* graph) {
  const Endpoint source = graph->node(save).inputs()[input];
  OPTFARM_ASSIGN_OR_RETURN(std::vector<std::string> strings,
                           ReadStrings(*graph, source));
  strings.insert(strings.end(), added.begin(), added.end());
  // Others may read the list as it is.
  const NodeId list = graph->Add(
      MakeStrings(graph->node(source.node).name(), strings), {}, {}, save);
  graph->SetInput(save, input, {list, 0});
  const std::string name = graph->node(source.node).name();
  RemoveUnused({source.node}, context, graph);
  // No effect where the name is still taken by the old list.
  if (graph->Find(name) == graph::kNoNode) graph->Rename(list, name);
  return absl::OkStatus();
}

absl::Status SaveToo(NodeId save, const std::vector<NodeId>& variables,
                     const TransformContext& context, Graph* graph) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<tensorflow::DataType> types,
                           graph::GetTypes(graph->node(save).def(), "dtypes"));
  // Both lists are read before one of them is changed.
  for (int input : {kNames, kSlices}) {
    OPTFARM_RETURN_IF_ERROR(
        ReadStrings(*graph, graph->node(save).inputs()[input]).status());
  }
  std::vector<std::string> names;
  for (NodeId id : variables) names.push_back(graph->node(id).name());
  OPTFARM_RETURN_IF_ERROR(AppendStrings(save, kNames, names, context, graph));
  OPTFARM_RETURN_IF_ERROR(AppendStrings(
      save, kSlices, std::vector<std::string>(names.size()), context, graph));
  std::vector<Endpoint> inputs(graph->node(save).inputs().begin(),
                               graph->node(save).inputs().end());
  for (NodeId id : variables) inputs.push_back({id, 0});
  types.resize(types.size() + variables.size(), tensorflow::DT_FLOAT);
  graph::SetTypes(graph->mutable_node(save)->mutable_def(), "dtypes", types);
  graph->SetInputs(save, inputs);
  return absl::OkStatus();
}

void RestoreToo(NodeId restore, const std::vector<NodeId>& variables,
                const std::vector<NodeId>& waiting, Graph* graph) {
  const graph::Node& old = graph->node(restore);
  std::vector<std::string> names;
  for (NodeId id : variables) names.push_back(graph->node(id).name());
  const NodeId name_list =
      graph->Add(MakeStrings(absl::StrCat(old.name(), "/tensor_names"), names),
                 {}, {}, restore);
  const NodeId slice_list =
      graph->Add(MakeStrings(absl::StrCat(old.name(), "/shape_and_slices"),
                             std::vector<std::string>(names.size())),
                 {}, {}, restore);
  tensorflow::NodeDef def = MakeNode(old.name(), "RestoreV2", old);
  graph::SetTypes(
      &def, "dtypes",
      std::vector<tensorflow::DataType>(names.size(), tensorflow::DT_FLOAT));
  const NodeId added = graph->Add(
      std::move(def), {old.inputs()[kPrefix], {name_list, 0}, {slice_list, 0}},
      {}, restore);
  for (size_t i = 0; i < variables.size(); ++i) {
    tensorflow::NodeDef assign =
        MakeNode(absl::StrCat(names[i], "/restore"), "Assign", old);
    graph::SetType(&assign, "T", tensorflow::DT_FLOAT);
    graph::SetBool(&assign, "use_locking", true);
    graph::SetBool(&assign, "validate_shape", true);
    const NodeId id = graph->Add(
        std::move(assign), {{variables[i], 0}, {added, static_cast<int>(i)}},
        {}, restore);
    for (NodeId noop : waiting) graph->AddControlInput(noop, id);
  }
}

// A node that restores from where `save` saves to, and is waited for.
NodeId FindRestore(const Graph& graph, const graph::Node& save) {
  const Endpoint prefix = save.inputs()[kPrefix];
  for (const graph::Use& use : graph.UsesOf(prefix)) {
    const graph::Node& node = graph.node(use.consumer);
    if (node.op() == "RestoreV2" && use.input == kPrefix &&
        node.inputs().size() == 3 &&
        !WaitForRestored(graph, use.consumer).empty()) {
      return use.consumer;
    }
  }
  return graph::kNoNode;
}

absl::StatusOr<int64_t> ParseDim(absl::string_view text) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= 0) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no size of a dimension"));
}

}  // namespace

void AddToSavers(const std::vector<NodeId>& variables,
                 TransformContext* context, Graph* graph) {
  if (variables.empty()) return;
  for (NodeId id : graph->Ids()) {
    const graph::Node& save = graph->node(id);
    if (save.op() != "SaveV2" || save.inputs().size() < 3) continue;
    const NodeId restore = FindRestore(*graph, save);
    absl::Status saved = absl::FailedPreconditionError(
        "nothing restores what it saves under the same file name");
    if (restore != graph::kNoNode) {
      const std::vector<NodeId> waiting = WaitForRestored(*graph, restore);
      saved = SaveToo(id, variables, *context, graph);
      if (saved.ok()) RestoreToo(restore, variables, waiting, graph);
    }
    if (!saved.ok()) {
      context->Warn(
          absl::StrCat("the new variables could not be added to the saver '",
                       graph->node(id).name(), "' (", saved.message(),
                       "); make a new saver for all variables"));
    }
  }
}

absl::StatusOr<SavedAs> FindSavedName(const Graph& graph, NodeId variable) {
  for (const graph::Use& use : graph.UsesOf({variable, 0})) {
    const graph::Node& assign = graph.node(use.consumer);
    const Endpoint value = RestoredFrom(graph, assign);
    if (value.node == graph::kNoNode || use.input != 0) continue;
    const graph::Node& restore = graph.node(value.node);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             ReadStrings(graph, restore.inputs()[kNames]));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> slices,
                             ReadStrings(graph, restore.inputs()[kSlices]));
    const size_t port = static_cast<size_t>(value.port);
    if (port >= names.size() || port >= slices.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", restore.name(), "' has no name for its output ", value.port));
    }
    return SavedAs{names[port], slices[port]};
  }
  return SavedAs{graph.node(variable).name(), ""};
}

absl::StatusOr<std::vector<SliceRange>> ParseSlice(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, ' ', absl::SkipEmpty());
  std::vector<SliceRange> ranges;
  if (words.empty()) return ranges;
  const std::vector<absl::string_view> parts =
      absl::StrSplit(words.back(), ':');
  if (parts.size() + 1 != words.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is no shape with a range for each dimension"));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t size, ParseDim(words[i]));
    SliceRange range{0, size};
    if (parts[i] != "-") {
      const std::pair<absl::string_view, absl::string_view> ends =
          absl::StrSplit(parts[i], absl::MaxSplits(',', 1));
      OPTFARM_ASSIGN_OR_RETURN(range.begin, ParseDim(ends.first));
      OPTFARM_ASSIGN_OR_RETURN(range.length, ParseDim(ends.second));
    }
    if (range.begin > size || range.length > size - range.begin) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' reaches beyond dimension ", i));
    }
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace optfarm::transforms
