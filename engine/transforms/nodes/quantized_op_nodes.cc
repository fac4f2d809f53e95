#include "engine/transforms/nodes/quantized_op_nodes.h"

#include <string>

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::transforms {
namespace {

bool HasQuantizedType(const graph::Node& node, tensorflow::DataType type) {
  const absl::StatusOr<tensorflow::DataType> quantized =
      graph::GetType(node.def(), "T");
  const absl::StatusOr<std::string> mode =
      graph::GetStringOr(node.def(), "mode", "MIN_COMBINED");
  return quantized.ok() && *quantized == type && mode.ok() &&
         *mode == "MIN_FIRST";
}

}  // namespace

tensorflow::NodeDef MakeNode(absl::string_view name, absl::string_view op,
                             const graph::Node& like) {
  tensorflow::NodeDef def;
  def.set_name(std::string(name));
  def.set_op(std::string(op));
  def.set_device(like.device());
  return def;
}

void CopyAttributes(const graph::Node& from,
                    std::initializer_list<const char*> names,
                    tensorflow::NodeDef* to) {
  for (const char* name : names) {
    if (from.FindAttr(name) != nullptr) {
      graph::CopyAttr(from.def(), name, to);
    }
  }
}

tensorflow::NodeDef MakeQuantize(absl::string_view name,
                                 tensorflow::DataType type,
                                 const graph::Node& like) {
  tensorflow::NodeDef def = MakeNode(name, "QuantizeV2", like);
  graph::SetType(&def, "T", type);
  graph::SetString(&def, "mode", "MIN_FIRST");
  return def;
}

tensorflow::NodeDef MakeRequantize(absl::string_view name,
                                   const graph::Node& like) {
  tensorflow::NodeDef def = MakeNode(name, "Requantize", like);
  graph::SetType(&def, "Tinput", tensorflow::DT_QINT32);
  graph::SetType(&def, "out_type", tensorflow::DT_QUINT8);
  return def;
}

void BecomeDequantize(graph::NodeId id,
                      absl::Span<const graph::Endpoint> quantized,
                      graph::NodeId replacement, graph::Graph* graph) {
  const std::vector<graph::NodeId> controls(
      graph->node(id).control_inputs().begin(),
      graph->node(id).control_inputs().end());
  for (graph::NodeId control : controls)
    graph->AddControlInput(replacement, control);
  graph->ClearControlInputs(id);
  tensorflow::NodeDef* def = graph->mutable_node(id)->mutable_def();
  def->set_op("Dequantize");
  def->clear_attr();
  graph::SetType(def, "T", tensorflow::DT_QUINT8);
  graph::SetString(def, "mode", "MIN_FIRST");
  graph->SetInputs(id, quantized);
}

bool IsDequantize(const graph::Node& node) {
  return graph::IsDequantize(node.op()) &&
         HasQuantizedType(node, tensorflow::DT_QUINT8);
}

bool IsQuantize(const graph::Node& node, tensorflow::DataType type) {
  return graph::IsQuantize(node.op()) && HasQuantizedType(node, type);
}

std::vector<graph::Endpoint> ValuesAndRange(graph::NodeId id) {
  return {{id, 0}, {id, 1}, {id, 2}};
}

bool ReadsValuesAndRange(const graph::Node& consumer, int first,
                         graph::NodeId source) {
  const std::vector<graph::Endpoint> wanted = ValuesAndRange(source);
  return consumer.inputs().size() >= first + wanted.size() &&
         consumer.inputs().subspan(first, wanted.size()) ==
             absl::MakeConstSpan(wanted);
}

}  // namespace optfarm::transforms
