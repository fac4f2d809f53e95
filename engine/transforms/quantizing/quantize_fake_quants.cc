// What quantize_nodes makes of ranges that were trained:
// FakeQuantWithMinMaxVars nodes tell to which range a result is to be
// requantized.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/quantizing/quantize_passes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

constexpr char kFakeQuant[] = "FakeQuantWithMinMaxVars";
constexpr size_t kLongestChain = 3;

// Ops whose result lies within the range of their input, so that limiting the
// input limits the result. TensorFlow hoists through any op with one input.
bool KeepsRange(const graph::Node& node) {
  constexpr std::array<absl::string_view, 8> kOps = {
      "Relu",    "Relu6",    "MaxPool",      "AvgPool",
      "Squeeze", "Identity", "StopGradient", "CheckNumerics"};
  return node.inputs().size() == 1 && absl::c_linear_search(kOps, node.op());
}

bool HasConstantRange(const Graph& graph, const graph::Node& fake_quant) {
  return fake_quant.inputs().size() == 3 &&
         IsConst(graph.node(fake_quant.inputs()[1].node)) &&
         IsConst(graph.node(fake_quant.inputs()[2].node));
}

// The nodes above the fake quantization that it can pass, nearest first.
std::vector<NodeId> PassableChain(const Graph& graph,
                                  const TransformContext& context,
                                  NodeId fake_quant) {
  std::vector<NodeId> chain;
  NodeId below = fake_quant;
  while (chain.size() < kLongestChain) {
    const NodeId above = graph.node(below).inputs()[0].node;
    if (!KeepsRange(graph.node(above)) ||
        !WhyShared(graph, context, above, below).empty()) {
      break;
    }
    chain.push_back(above);
    below = above;
  }
  return chain;
}

void Hoist(NodeId fake_quant, const std::vector<NodeId>& chain, Graph* graph) {
  const NodeId nearest = chain.front();
  const NodeId deepest = chain.back();
  const std::string name = graph->node(fake_quant).name();
  graph->RedirectUses({fake_quant, 0}, {nearest, 0});
  graph->RedirectControlUses(fake_quant, nearest);
  std::vector<Endpoint> inputs(graph->node(fake_quant).inputs().begin(),
                               graph->node(fake_quant).inputs().end());
  inputs[0] = graph->node(deepest).inputs()[0];
  graph->SetInputs(fake_quant, inputs);
  graph->SetInput(deepest, 0, {fake_quant, 0});
  graph->Rename(fake_quant, absl::StrCat(name, "_hoisted"));
  graph->Rename(nearest, name);
}

// Whether the node has the 8 bits that quantized ops compute with.
bool HasEightBits(const graph::Node& fake_quant) {
  const absl::StatusOr<int64_t> bits =
      graph::GetIntOr(fake_quant.def(), "num_bits", 8);
  const absl::StatusOr<bool> is_narrow =
      graph::GetBoolOr(fake_quant.def(), "narrow_range", false);
  return bits.ok() && *bits == 8 && is_narrow.ok() && !*is_narrow;
}

// Inputs of the one Requantize that does the work of `outer` and the one whose
// result it requantizes; nullopt when there are no two.
std::optional<std::vector<Endpoint>> MergedInputs(const Graph& graph,
                                                  const graph::Node& outer) {
  if (!graph::HasRole(outer.op(), graph::OpRole::kRequantize) ||
      outer.inputs().size() != 5) {
    return std::nullopt;
  }
  const NodeId quantize_id = outer.inputs()[0].node;
  const graph::Node& quantize = graph.node(quantize_id);
  if (!ReadsValuesAndRange(outer, 0, quantize_id) ||
      !IsQuantize(quantize, tensorflow::DT_QINT32) ||
      quantize.inputs().size() != 3 ||
      quantize.inputs().subspan(1) != outer.inputs().subspan(3)) {
    return std::nullopt;
  }
  const graph::Node& floats = graph.node(quantize.inputs()[0].node);
  if (!IsDequantize(floats) || floats.inputs().size() != 3) {
    return std::nullopt;
  }
  const NodeId inner_id = floats.inputs()[0].node;
  const graph::Node& inner = graph.node(inner_id);
  if (!graph::HasRole(inner.op(), graph::OpRole::kRequantize) ||
      inner.inputs().size() != 5 || !ReadsValuesAndRange(floats, 0, inner_id) ||
      !graph::HasRole(graph.node(inner.inputs()[3].node).op(),
                      graph::OpRole::kRequantizationRange)) {
    return std::nullopt;
  }
  std::vector<Endpoint> inputs(inner.inputs().begin(),
                               inner.inputs().begin() + 3);
  inputs.insert(inputs.end(), outer.inputs().begin() + 3, outer.inputs().end());
  return inputs;
}

}  // namespace

void HoistFakeQuants(TransformContext* context, Graph* graph) {
  for (NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (node.op() != kFakeQuant || !HasConstantRange(*graph, node)) continue;
    const std::vector<NodeId> chain = PassableChain(*graph, *context, id);
    if (chain.empty() || context->IsInput(node.name())) continue;
    Hoist(id, chain, graph);
    context->CountChange();
  }
}

void ReplaceFakeQuants(TransformContext* context, Graph* graph) {
  for (NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (node.op() != kFakeQuant) continue;
    if (!HasConstantRange(*graph, node) || !HasEightBits(node)) {
      context->Skip(node.name(),
                    "its range is not constant, or it does not have 8 bits");
      continue;
    }
    const Endpoint min = node.inputs()[1];
    const Endpoint max = node.inputs()[2];
    const NodeId quantize =
        graph->Add(MakeQuantize(absl::StrCat(node.name(), "_eightbit/quantize"),
                                tensorflow::DT_QINT32, node),
                   node.inputs(), {}, id);
    std::vector<Endpoint> inputs = ValuesAndRange(quantize);
    inputs.push_back(min);
    inputs.push_back(max);
    const NodeId requantize = graph->Add(
        MakeRequantize(absl::StrCat(node.name(), "_eightbit/requantize"), node),
        inputs, {}, id);
    BecomeDequantize(id, ValuesAndRange(requantize), quantize, graph);
    context->CountChange();
  }
}

void MergeAdjacentRequantizes(Graph* graph) {
  for (NodeId id : graph->Ids()) {
    const std::optional<std::vector<Endpoint>> inputs =
        MergedInputs(*graph, graph->node(id));
    if (inputs.has_value()) graph->SetInputs(id, *inputs);
  }
}

}  // namespace optfarm::transforms
