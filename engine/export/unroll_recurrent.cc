#include "engine/export/unroll_recurrent.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/export/recurrent_steps.h"
#include "engine/graph/attr.h"
#include "engine/graph/shape_inference.h"

namespace optfarm::exporting {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::PartialShape;
using tensorflow::NodeDef;

constexpr int kMostNodes = 200000;
constexpr absl::string_view kLiteLstm = "LiteLstmSequence";

bool IsRecurrent(const std::string& op) {
  return op == kLiteLstm || LayerKindOf(op).has_value();
}

float FloatOf(const Node& node, const char* name) {
  return graph::GetFloatOr(node.def(), name, 0).value_or(0);
}

// The node stays, as an Identity, under its name and with what says that it is
// an output; who reads it reads the results themselves.
void Return(NodeId id, const std::vector<Endpoint>& results,
            tensorflow::DataType type, Graph* graph) {
  NodeDef* def = graph->mutable_node(id)->mutable_def();
  std::vector<std::string> own;
  for (const auto& [name, value] : def->attr()) {
    if (name[0] != '_') own.push_back(name);
  }
  for (const std::string& name : own) def->mutable_attr()->erase(name);
  def->set_op("IdentityN");
  graph::SetTypes(def, "T",
                  std::vector<tensorflow::DataType>(results.size(), type));
  graph->SetInputs(id, results);
  for (size_t port = 0; port < results.size(); ++port) {
    graph->RedirectUses({id, static_cast<int>(port)}, results[port], id);
  }
}

}  // namespace

bool OnnxHoldsLayer(const Node& node, const graph::ShapeMap& shapes) {
  if (node.op() != kLiteLstm) return true;
  // Peephole weights are input 6; projection and layer norm follow.
  constexpr size_t kFirstForeign = 7, kLastForeign = 9;
  if (node.inputs().size() <= kLastForeign) return true;
  for (size_t i = kFirstForeign; i <= kLastForeign; ++i) {
    if (shapes.Of(node.inputs()[i]).elements() != 0) return false;
  }
  const std::string function =
      graph::GetStringOr(node.def(), "activation", "tanh").value_or("tanh");
  return FloatOf(node, "cell_scale") == 0 && FloatOf(node, "cell_clip") == 0 &&
         function != "relu6" && function != "relu_n1_to_1" &&
         !graph::GetBoolOr(node.def(), "couples_gates", false).value_or(false);
}

bool TfliteHoldsLayer(const Node&, const graph::ShapeMap&) { return false; }

absl::Status UnrollRecurrent(absl::Span<const FedShape> inputs,
                             HoldsLayer holds_layer, Graph* graph) {
  std::vector<NodeId> layers;
  for (NodeId id : graph->Ids()) {
    if (IsRecurrent(graph->node(id).op())) layers.push_back(id);
  }
  if (layers.empty()) return absl::OkStatus();
  graph::ShapeOptions options;
  for (const FedShape& input : inputs) {
    options.feeds[input.tensor] = input.shape;
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           graph::InferShapes(*graph, options));
  // Returned to their readers once all are unrolled: a layer may read another,
  // whose shapes are known under its own outputs alone.
  std::vector<std::pair<NodeId, UnrolledLayer>> unrolled;
  for (NodeId id : layers) {
    if (holds_layer(graph->node(id), shapes)) continue;
    if (graph->node_count() > kMostNodes) {
      return absl::InvalidArgumentError(
          absl::StrCat("node '", graph->node(id).name(),
                       "': unrolled recurrent layers grow the graph beyond ",
                       kMostNodes, " nodes; convert it for shorter sequences"));
    }
    const absl::StatusOr<std::optional<UnrolledLayer>> layer =
        graph->node(id).op() == kLiteLstm ? UnrollLiteLstm(id, shapes, graph)
                                          : UnrollSequence(id, shapes, graph);
    if (!layer.ok()) {
      return absl::Status(layer.status().code(),
                          absl::StrCat("node '", graph->node(id).name(),
                                       "': ", layer.status().message()));
    }
    if (layer->has_value()) unrolled.emplace_back(id, **layer);
  }
  for (const auto& [id, layer] : unrolled) {
    Return(id, layer.outputs, layer.type, graph);
  }
  return absl::OkStatus();
}

}  // namespace optfarm::exporting
