// strip_unused_nodes: keeps what the outputs need, and cuts the graph at its
// declared inputs, which become Placeholders.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/op_defs.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::PartialShape;
using tensorflow::DataType;

// The types and shapes that the user gave single inputs.
struct Overrides {
  std::map<std::string, DataType> types;
  std::map<std::string, PartialShape> shapes;
};

absl::StatusOr<Overrides> ReadOverrides(const TransformArguments& arguments) {
  const std::vector<std::string> names = arguments.Strings("name");
  const std::vector<DataType> types = arguments.Types("type_for_name");
  const std::vector<PartialShape> shapes = arguments.Shapes("shape_for_name");
  Overrides overrides;
  for (const auto& [parameter, count] :
       {std::pair("type_for_name", types.size()),
        std::pair("shape_for_name", shapes.size())}) {
    if (count != names.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'name' is given ", names.size(), " times and '", parameter, "' ",
          count,
          " times; each name needs both type_for_name and shape_for_name"));
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    overrides.types[names[i]] = types[i];
    overrides.shapes[names[i]] = shapes[i];
  }
  return overrides;
}

// Whether something reads another port than 0: a Placeholder has no other.
bool HasSeveralPortsRead(const Graph& graph, NodeId id,
                         const TransformContext& context) {
  for (const graph::Use& use : graph.node(id).uses()) {
    if (use.port > 0) return true;
  }
  for (const graph::TensorName& input : context.inputs()) {
    if (input.node == graph.node(id).name() && input.port > 0) return true;
  }
  return false;
}

// The type of output 0 where the op table knows it, else float.
DataType OwnType(const graph::Node& node) {
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) return tensorflow::DT_FLOAT;
  const absl::StatusOr<std::vector<DataType>> types =
      graph::OutputTypes(*op_def, node.def());
  if (!types.ok() || types->empty()) return tensorflow::DT_FLOAT;
  return graph::BaseType(types->front());
}

void MakePlaceholder(NodeId id, const Overrides& overrides, Graph* graph,
                     const TransformArguments& arguments) {
  graph::Node* node = graph->mutable_node(id);
  // TensorFlow's default is float whatever the node was, which gives graphs
  // that do not load; a type that is given always wins.
  DataType type =
      arguments.Has("type") ? arguments.Type("type") : OwnType(*node);
  PartialShape shape = arguments.Shape("shape");
  if (const auto it = overrides.types.find(node->name());
      it != overrides.types.end()) {
    type = it->second;
    shape = overrides.shapes.at(node->name());
  }
  tensorflow::NodeDef* def = node->mutable_def();
  def->set_op("Placeholder");
  def->clear_device();
  def->clear_attr();
  graph::SetType(def, "dtype", type);
  *(*def->mutable_attr())["shape"].mutable_shape() = shape.ToProto();
  graph->SetInputs(id, {});
  graph->ClearControlInputs(id);
}

// Cuts the graph at its inputs: they need nothing any more.
void CutAtInputs(const Overrides& overrides, TransformContext* context,
                 Graph* graph) {
  for (const graph::TensorName& input : context->inputs()) {
    const NodeId id = graph->Find(input.node);
    if (id == graph::kNoNode || graph->node(id).op() == "Placeholder") continue;
    if (HasSeveralPortsRead(*graph, id, *context)) {
      // TensorFlow makes a Placeholder all the same, whose other ports then
      // do not exist.
      context->Skip(input.node,
                    "it has several outputs that are read and cannot become a "
                    "Placeholder; it is kept with what it needs");
    } else {
      MakePlaceholder(id, overrides, graph, context->arguments());
      context->CountChange();
    }
  }
}

absl::Status StripUnusedNodes(Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const Overrides overrides,
                           ReadOverrides(context->arguments()));
  if (context->outputs().empty()) {
    return absl::InvalidArgumentError(
        "without outputs every node would be removed; name the outputs");
  }
  std::vector<NodeId> roots;
  for (const graph::TensorName& output : context->outputs()) {
    OPTFARM_ASSIGN_OR_RETURN(const NodeId id, graph->Get(output.node));
    roots.push_back(id);
  }
  CutAtInputs(overrides, context, graph);
  for (const graph::TensorName& input : context->inputs()) {
    const NodeId id = graph->Find(input.node);
    if (id != graph::kNoNode) roots.push_back(id);
  }
  const std::vector<bool> needed = graph::ReachableFrom(*graph, roots);
  std::vector<NodeId> unused;
  for (NodeId id : graph->Ids()) {
    if (!needed[id]) unused.push_back(id);
  }
  graph->RemoveAll(unused);
  context->CountChange(static_cast<int64_t>(unused.size()));
  return absl::OkStatus();
}

}  // namespace

TransformDef StripUnusedNodesTransform() {
  return {
      .name = "strip_unused_nodes",
      .summary =
          "Removes nodes that the outputs do not need and turns the declared "
          "inputs into Placeholders.",
      .parameters =
          {{.name = "type",
            .type = ParameterType::kType,
            .help = "dtype of inputs that become Placeholders; default: the "
                    "node's dtype."},
           {.name = "shape",
            .type = ParameterType::kShape,
            .help = "Shape of inputs that become Placeholders; default: a "
                    "scalar. Inputs that are already Placeholders are not "
                    "changed."},
           {.name = "name",
            .help = "An input with its own type and shape, given by the "
                    "type_for_name and shape_for_name at the same position.",
            .repeated = true},
           {.name = "type_for_name",
            .type = ParameterType::kType,
            .help = "dtype of the input at the same position.",
            .repeated = true},
           {.name = "shape_for_name",
            .type = ParameterType::kShape,
            .help = "Shape of the input at the same position.",
            .repeated = true}},
      .run = StripUnusedNodes};
}

}  // namespace optfarm::transforms
