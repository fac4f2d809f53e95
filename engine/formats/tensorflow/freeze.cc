#include "engine/formats/tensorflow/freeze.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/variable_conversion.h"
#include "engine/formats/tensorflow/variable_values.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_name.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/protobuf/saver.pb.h"

namespace optfarm::formats {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;

absl::StatusOr<tensorflow::SaverDef> LoadSaver(const std::string& path) {
  constexpr uint64_t kMaxSaverBytes = 1 << 20;
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           ReadFile(path, kMaxSaverBytes));
  google::protobuf::LogSilencer silencer;
  tensorflow::SaverDef saver;
  if (!google::protobuf::TextFormat::ParseFromString(bytes, &saver) &&
      !saver.ParseFromString(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is not a SaverDef, binary or text"));
  }
  return saver;
}

// "a:0" and "^a" -> "a"; restore and init ops are written in either form.
std::string NodeOf(absl::string_view name) {
  absl::ConsumePrefix(&name, "^");
  return std::string(name.substr(0, name.rfind(':')));
}

bool IsUpdate(const Node& node) {
  return absl::StartsWith(node.op(), "Assign") ||
         absl::StartsWith(node.op(), "Scatter") ||
         absl::StartsWith(node.op(), "ResourceScatter") ||
         absl::StartsWith(node.op(), "Apply") ||
         absl::StartsWith(node.op(), "ResourceApply");
}

// Lets what reads or waits for an update read the variable and not wait.
// Nodes without outputs keep their edges: they restore and initialize.
void BypassUpdates(Graph* graph, std::vector<std::string>* remarks) {
  int bypassed = 0;
  for (const NodeId id : graph->Ids()) {
    const Node& node = graph->node(id);
    if (graph::IsNoOp(node.op())) continue;
    std::vector<NodeId> waits_for;
    bool waits_for_update = false;
    for (const NodeId control : node.control_inputs()) {
      if (IsUpdate(graph->node(control))) {
        waits_for_update = true;
      } else {
        waits_for.push_back(control);
      }
    }
    if (waits_for_update) {
      graph->ClearControlInputs(id);
      for (const NodeId control : waits_for)
        graph->AddControlInput(id, control);
    }
    if (!IsUpdate(node) || node.inputs().empty()) continue;
    const graph::Endpoint result{id, 0};
    if (graph->UsesOf(result).empty()) continue;
    graph->RedirectUses(result, node.inputs()[0]);
    ++bypassed;
  }
  if (bypassed > 0) {
    remarks->push_back(absl::StrCat(
        bypassed,
        " updates of variables are left out; the stored values are "
        "read instead."));
  }
}

// The nodes that the outputs need: by edges, and by the wish to be placed
// beside a node, as TensorFlow's extraction follows it.
absl::StatusOr<std::vector<bool>> FindKept(
    const Graph& graph, const std::vector<std::string>& outputs) {
  std::vector<NodeId> stack;
  for (const std::string& output : outputs) {
    absl::StatusOr<NodeId> id = graph.Get(NodeOf(output));
    if (!id.ok()) return Annotate(id.status(), "output");
    stack.push_back(*id);
  }
  std::vector<bool> kept(graph.id_limit(), false);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (kept[id]) continue;
    kept[id] = true;
    const Node& node = graph.node(id);
    for (const graph::Endpoint& input : node.inputs()) {
      stack.push_back(input.node);
    }
    for (const NodeId control : node.control_inputs()) {
      stack.push_back(control);
    }
    const tensorflow::AttrValue* beside = node.FindAttr("_class");
    if (beside == nullptr) continue;
    for (absl::string_view name : beside->list().s()) {
      if (!absl::ConsumePrefix(&name, "loc:@")) continue;
      const NodeId other = graph.Find(name);
      if (other != graph::kNoNode) stack.push_back(other);
    }
  }
  return kept;
}

// Sorts the kept variables into those that become constants, and remarks what
// was named but is not there.
std::vector<NodeId> ChooseVariables(const Graph& graph,
                                    const std::vector<bool>& kept,
                                    const FreezeOptions& options,
                                    std::vector<std::string>* remarks) {
  const absl::flat_hash_set<std::string> only(options.only_variables.begin(),
                                              options.only_variables.end());
  const absl::flat_hash_set<std::string> never(options.not_variables.begin(),
                                               options.not_variables.end());
  std::vector<std::string> renamed;
  for (const auto& [name, stored] : options.stored_names) {
    renamed.push_back(name);
  }
  for (const auto& names :
       {options.only_variables, options.not_variables, renamed}) {
    for (const std::string& name : names) {
      const NodeId id = graph.Find(name);
      if (id == graph::kNoNode || !IsVariable(graph.node(id))) {
        remarks->push_back(
            absl::StrCat("'", name, "' is no variable of the graph."));
      }
    }
  }
  std::vector<NodeId> chosen;
  for (const NodeId id : graph.Ids()) {
    const Node& node = graph.node(id);
    if (!kept[id] || !IsVariable(node)) continue;
    if (!only.empty() && !only.contains(node.name())) continue;
    if (never.contains(node.name())) continue;
    chosen.push_back(id);
  }
  return chosen;
}

absl::Status CheckHasVariables(const Graph& graph) {
  for (const NodeId id : graph.Ids()) {
    if (IsVariable(graph.node(id))) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "the graph has no variables for the checkpoint's values: is it frozen "
      "already?");
}

void RemarkTables(const Graph& graph, const FreezeSource& source,
                  std::vector<std::string>* remarks) {
  for (const NodeId id : graph.Ids()) {
    const Node& node = graph.node(id);
    if (!absl::StrContains(node.op(), "HashTable")) continue;
    remarks->push_back(absl::StrCat(
        "'", node.name(), "' (op ", node.op(),
        ") is a lookup table; a frozen graph cannot hold what fills it",
        source.init_op.empty() ? ""
                               : absl::StrCat(" (node '", source.init_op, "')"),
        source.assets.empty()
            ? ""
            : absl::StrCat(", nor the file ",
                           absl::StrJoin(source.assets, ", ")),
        "."));
  }
}

void ClearDevices(tensorflow::GraphDef* def) {
  for (tensorflow::NodeDef& node : *def->mutable_node()) node.clear_device();
  for (auto& function : *def->mutable_library()->mutable_function()) {
    for (auto& node : *function.mutable_node_def()) node.clear_device();
  }
}

}  // namespace

absl::StatusOr<FreezeSource> OpenGraphToFreeze(
    const std::string& graph_path, const std::string& checkpoint_path,
    const std::string& saver_path) {
  FreezeSource source;
  OPTFARM_ASSIGN_OR_RETURN(source.checkpoint,
                           Checkpoint::Open(checkpoint_path));
  OPTFARM_ASSIGN_OR_RETURN(source.graph, LoadGraphDef(graph_path));
  if (!saver_path.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::SaverDef saver,
                             LoadSaver(saver_path));
    source.restore_op = NodeOf(saver.restore_op_name());
  }
  return source;
}

absl::StatusOr<FreezeSource> OpenMetaGraphToFreeze(
    const std::string& meta_path, const std::string& checkpoint_path) {
  FreezeSource source;
  OPTFARM_ASSIGN_OR_RETURN(source.checkpoint,
                           Checkpoint::Open(checkpoint_path));
  OPTFARM_ASSIGN_OR_RETURN(source.meta, LoadMetaGraph(meta_path));
  source.graph = std::move(*source.meta.mutable_graph_def());
  source.restore_op = NodeOf(source.meta.saver_def().restore_op_name());
  OPTFARM_ASSIGN_OR_RETURN(source.init_op, InitOpOf(source.meta));
  return source;
}

absl::StatusOr<FreezeSource> OpenSavedModelToFreeze(
    const std::string& folder, const std::vector<std::string>& tags) {
  FreezeSource source;
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::SavedModel model,
                           LoadSavedModel(folder));
  absl::StatusOr<tensorflow::MetaGraphDef> meta =
      TakeMetaGraph(std::move(model), tags);
  if (!meta.ok()) {
    return Annotate(meta.status(), absl::StrCat("'", folder, "'"));
  }
  source.meta = *std::move(meta);
  source.graph = std::move(*source.meta.mutable_graph_def());
  source.restore_op = NodeOf(source.meta.saver_def().restore_op_name());
  OPTFARM_ASSIGN_OR_RETURN(source.init_op, InitOpOf(source.meta));
  source.init_op = NodeOf(source.init_op);
  for (const auto& asset : source.meta.asset_file_def()) {
    source.assets.push_back(absl::StrCat("'", asset.filename(), "'"));
  }
  const std::string variables =
      JoinPath(JoinPath(folder, "variables"), "variables");
  if (Exists(absl::StrCat(variables, ".index"))) {
    OPTFARM_ASSIGN_OR_RETURN(source.checkpoint, Checkpoint::Open(variables));
  }
  return source;
}

absl::StatusOr<FrozenGraph> Freeze(FreezeSource source,
                                   const FreezeOptions& options) {
  OPTFARM_ASSIGN_OR_RETURN(Graph graph,
                           Graph::FromDef(std::move(source.graph)));
  if (options.outputs.empty()) {
    return absl::InvalidArgumentError("the names of the outputs are needed");
  }
  FrozenGraph frozen;
  if (options.drop_updates) BypassUpdates(&graph, &frozen.remarks);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<bool> kept,
                           FindKept(graph, options.outputs));
  // A SavedModel may well have none.
  const bool is_saved_model = source.meta.has_meta_info_def();
  if (!is_saved_model) OPTFARM_RETURN_IF_ERROR(CheckHasVariables(graph));
  const std::vector<NodeId> variables =
      ChooseVariables(graph, kept, options, &frozen.remarks);
  VariableSource values_from;
  values_from.checkpoint = source.checkpoint.get();
  // Without a checkpoint the node that would read it is of no use.
  if (source.checkpoint != nullptr) values_from.restore_op = source.restore_op;
  values_from.stored_names.insert(options.stored_names.begin(),
                                  options.stored_names.end());
  values_from.initializers = options.initializers;
  values_from.evaluate = options.evaluate;
  OPTFARM_ASSIGN_OR_RETURN(VariableValues values,
                           FindVariableValues(graph, variables, values_from));
  absl::flat_hash_set<NodeId> wanted(variables.begin(), variables.end());
  absl::erase_if(
      values, [&](const auto& item) { return !wanted.contains(item.first); });
  std::vector<NodeId> unneeded;
  for (const NodeId id : graph.Ids()) {
    if (!kept[id]) unneeded.push_back(id);
  }
  graph.RemoveAll(unneeded);
  frozen.converted_variables = static_cast<int>(values.size());
  OPTFARM_RETURN_IF_ERROR(ConvertVariables(std::move(values), &graph));
  RemarkTables(graph, source, &frozen.remarks);
  frozen.graph = std::move(graph).TakeDef();
  if (options.clear_devices) ClearDevices(&frozen.graph);
  return frozen;
}

}  // namespace optfarm::formats
