#include "engine/transforms/quantizing/expanded_layers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

constexpr char kFused[] = "AndRequantize";
constexpr char kUnscaled[] = "/unscaled";
// x, weights, bias, four ends of ranges.
constexpr size_t kInputs = 7;

// Where a layer's result comes out and in what form.
struct Exit {
  // The layer itself, or the node that reads its accumulators.
  NodeId node = graph::kNoNode;
  bool gives_quantized = true;
  Endpoint min, max;
};

// kNoNode when the layer has another form.
Exit FindExit(const Graph& graph, NodeId id) {
  const graph::Node& layer = graph.node(id);
  if (absl::EndsWith(layer.op(), kFused)) {
    return {id, true, layer.inputs()[kInputs], layer.inputs()[kInputs + 1]};
  }
  NodeId reader = graph::kNoNode;
  for (const graph::Use& use : layer.uses()) {
    if (reader != graph::kNoNode && use.consumer != reader) return {};
    reader = use.consumer;
  }
  if (reader == graph::kNoNode ||
      !ReadsValuesAndRange(graph.node(reader), 0, id)) {
    return {};
  }
  const graph::Node& node = graph.node(reader);
  if (graph::HasRole(node.op(), graph::OpRole::kRequantizePerChannel) &&
      node.inputs().size() == 5) {
    return {reader, true, node.inputs()[3], node.inputs()[4]};
  }
  return graph::IsDequantize(node.op()) ? Exit{reader, false, {}, {}} : Exit{};
}

// The name that the layer's sum, before its activation, has in the original;
// "" when there is none.
std::string NameOfSum(const Graph& original, absl::string_view layer) {
  absl::string_view name = absl::StripSuffix(layer, kScaledSuffix);
  if (!absl::ConsumeSuffix(&name, "/eightbit")) return "";
  NodeId at = original.Find(name);
  while (at != graph::kNoNode) {
    const graph::Node& node = original.node(at);
    if (graph::ActivationOf(node.op()) == graph::Activation::kNone &&
        !graph::IsFakeQuantize(node.op())) {
      return node.name();
    }
    const bool goes_on = !node.inputs().empty() && node.inputs()[0].port == 0;
    at = goes_on ? node.inputs()[0].node : graph::kNoNode;
  }
  return "";
}

absl::StatusOr<NodeId> AddZeros(const Graph& graph, NodeId bias, NodeId before,
                                Graph* out) {
  OPTFARM_ASSIGN_OR_RETURN(const FloatView view,
                           FloatView::Of(graph.node(bias)));
  const std::vector<float> zeros(view.values().size(), 0.0f);
  return out->Add(MakeConst(absl::StrCat(graph.node(bias).name(), "/none"),
                            Tensor::FromValues<float>(
                                {static_cast<int64_t>(zeros.size())}, zeros)),
                  {}, {}, before);
}

// The float sums of the layer's product.
absl::StatusOr<NodeId> AddProduct(NodeId id, Graph* graph) {
  const graph::Node& layer = graph->node(id);
  const std::string& base = layer.name();
  const bool is_matrix =
      graph::RowOf(layer.op()).layer.product == graph::LayerProduct::kMatrix;
  std::vector<Endpoint> inputs(layer.inputs().begin(),
                               layer.inputs().begin() + kInputs);
  OPTFARM_ASSIGN_OR_RETURN(const NodeId zeros,
                           AddZeros(*graph, inputs[2].node, id, graph));
  inputs[2] = {zeros, 0};
  tensorflow::NodeDef product = layer.def();
  product.set_name(absl::StrCat(base, "/product"));
  product.set_op(std::string(
      absl::StripSuffix(absl::StripSuffix(layer.op(), kFused), "AndRelu")));
  product.mutable_attr()->erase("Tbias");
  if (is_matrix) graph::SetType(&product, "Tbias", tensorflow::DT_FLOAT);
  graph::SetType(&product, is_matrix ? "Toutput" : "out_type",
                 tensorflow::DT_QINT32);
  const NodeId accumulators = graph->Add(std::move(product), inputs, {}, id);
  tensorflow::NodeDef decode =
      MakeNode(absl::StrCat(base, "/floats"), "Dequantize", layer);
  graph::SetType(&decode, "T", tensorflow::DT_QINT32);
  graph::SetString(&decode, "mode", "SCALED");
  graph::SetInt(&decode, "axis", is_matrix ? 1 : 3);
  return graph->Add(std::move(decode), ValuesAndRange(accumulators), {}, id);
}

// A product with a number for each channel.
NodeId AddFactor(NodeId floats, const std::string& name,
                 const std::vector<float>& factors, NodeId before,
                 Graph* graph) {
  const NodeId constant = graph->Add(
      MakeConst(absl::StrCat(name, "/factors"),
                Tensor::FromValues<float>(
                    {static_cast<int64_t>(factors.size())}, factors)),
      {}, {}, before);
  tensorflow::NodeDef mul = MakeNode(name, "Mul", graph->node(before));
  graph::SetType(&mul, "T", tensorflow::DT_FLOAT);
  return graph->Add(std::move(mul), {{floats, 0}, {constant, 0}}, {}, before);
}

// The sum of product and bias, called `sum_name` on the original's scale.
// `factors` may be nullptr.
absl::StatusOr<NodeId> AddSum(NodeId id, NodeId floats,
                              const std::string& sum_name,
                              const std::vector<float>* factors, Graph* graph) {
  const graph::Node& layer = graph->node(id);
  Endpoint bias = layer.inputs()[2];
  if (factors != nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(const FloatView view,
                             FloatView::Of(graph->node(bias.node)));
    std::vector<float> values(view.values().begin(), view.values().end());
    std::vector<float> inverse(factors->size(), 1.0f);
    for (size_t c = 0; c < std::min(values.size(), inverse.size()); ++c) {
      inverse[c] = 1.0f / (*factors)[c];
      values[c] *= inverse[c];
    }
    floats = AddFactor(floats, absl::StrCat(layer.name(), "/down"), inverse, id,
                       graph);
    bias = {
        graph->Add(
            MakeConst(absl::StrCat(graph->node(bias.node).name(), kUnscaled),
                      Tensor::FromValues<float>(
                          {static_cast<int64_t>(values.size())}, values)),
            {}, {}, id),
        0};
  }
  tensorflow::NodeDef add = MakeNode(sum_name, "Add", layer);
  graph::SetType(&add, "T", tensorflow::DT_FLOAT);
  const NodeId sum = graph->Add(std::move(add), {{floats, 0}, bias}, {}, id);
  if (factors == nullptr) return sum;
  return AddFactor(sum, absl::StrCat(layer.name(), "/up"), *factors, id, graph);
}

absl::Status Expand(NodeId id, const Exit& exit, const std::string& sum_name,
                    const std::vector<float>* factors, Graph* graph) {
  OPTFARM_ASSIGN_OR_RETURN(const NodeId floats, AddProduct(id, graph));
  // The node that had the name gives it away.
  const NodeId taken = graph->Find(sum_name);
  if (taken != graph::kNoNode) {
    graph->Rename(taken, absl::StrCat(sum_name, "/decoded"));
  }
  OPTFARM_ASSIGN_OR_RETURN(NodeId result,
                           AddSum(id, floats, sum_name, factors, graph));
  const graph::Node& layer = graph->node(id);
  if (graph::RowOf(layer.op()).layer.has_relu) {
    tensorflow::NodeDef relu =
        MakeNode(absl::StrCat(layer.name(), "/relu"), "Relu", layer);
    graph::SetType(&relu, "T", tensorflow::DT_FLOAT);
    result = graph->Add(std::move(relu), {{result, 0}}, {}, id);
  }
  if (exit.gives_quantized) {
    result = graph->Add(MakeQuantize(absl::StrCat(layer.name(), "/codes"),
                                     tensorflow::DT_QUINT8, layer),
                        {{result, 0}, exit.min, exit.max}, {}, id);
  }
  for (int port = 0; port < (exit.gives_quantized ? 3 : 1); ++port) {
    graph->RedirectUses({exit.node, port}, {result, port});
  }
  graph->RedirectControlUses(exit.node, result);
  graph->Remove(exit.node);
  if (exit.node != id && graph->node(id).uses().empty()) graph->Remove(id);
  return absl::OkStatus();
}

}  // namespace

absl::Status ExpandLayers(const Graph& original, const ChannelFactors& factors,
                          const IdleBiases& idle, Graph* graph) {
  for (NodeId id : graph->Ids()) {
    if (!graph->Has(id)) continue;
    const graph::Node& node = graph->node(id);
    if (!graph::IsQuantizedLayer(node.op()) || node.inputs().size() < kInputs ||
        !IsConst(graph->node(node.inputs()[2].node)) ||
        idle.contains(graph->node(node.inputs()[2].node).name())) {
      continue;
    }
    const Exit exit = FindExit(*graph, id);
    const std::string name = NameOfSum(original, node.name());
    if (exit.node == graph::kNoNode || name.empty()) continue;
    const auto found = factors.find(
        std::string(absl::StripSuffix(node.name(), kScaledSuffix)));
    OPTFARM_RETURN_IF_ERROR(
        Expand(id, exit, name,
               found == factors.end() ? nullptr : &found->second, graph));
  }
  return absl::OkStatus();
}

ConstantShifts ShiftsOfScaled(ConstantShifts shifts,
                              const ChannelFactors& factors,
                              const Graph& graph) {
  for (const auto& [layer, values] : factors) {
    const NodeId id = graph.Find(absl::StrCat(layer, kScaledSuffix));
    if (id == graph::kNoNode || graph.node(id).inputs().size() < kInputs) {
      continue;
    }
    const std::string& bias =
        graph.node(graph.node(id).inputs()[2].node).name();
    const auto found = shifts.find(absl::StrCat(bias, kUnscaled));
    if (found == shifts.end()) continue;
    std::vector<float> shift = std::move(found->second);
    shifts.erase(found);
    for (size_t c = 0; c < std::min(shift.size(), values.size()); ++c) {
      shift[c] *= values[c];
    }
    shifts[bias] = std::move(shift);
  }
  return shifts;
}

}  // namespace optfarm::transforms
