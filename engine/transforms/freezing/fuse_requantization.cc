// fuse_requantization: one op for each layer that quantize_layers made, once
// its ranges are known.
//
//   RequantizePerChannel(QuantizedConv2DWithBiasAndRelu(...), min, max)
//   becomes QuantizedConv2DWithBiasAndReluAndRequantize(..., min, max)
//
//   Requantize(QuantizeV2[qint32](x, ...), min, max)
//   becomes QuantizeV2[quint8](x, min, max)
//
// Tensors that are joined get one range for all of them first, so that joining
// copies quantized values. Where a range is still found at each run, the layer
// stays in two ops. What follows from ranges that are known now, quantized
// values of constants and scaled ranges, becomes constant.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/freezing/known_ranges.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

bool IsRequantize(const graph::Node& node) {
  return graph::IsRequantize(node.op()) && node.inputs().size() == 5;
}

bool HasConstantRange(const Graph& graph, const graph::Node& requantize) {
  return IsConst(graph.node(requantize.inputs()[3].node)) &&
         IsConst(graph.node(requantize.inputs()[4].node));
}

bool IsJoin(const graph::Node& node) {
  return graph::HasRole(node.op(), graph::OpRole::kQuantizedConcat);
}

// --- One range for what is joined --------------------------------------------

// Sets of nodes that are to have one range.
class Sets {
 public:
  NodeId Find(NodeId id) {
    const auto [it, is_new] = parent_.emplace(id, id);
    while (it->second != parent_[it->second]) {
      it->second = parent_[it->second];
    }
    return it->second;
  }
  void Join(NodeId a, NodeId b) { parent_[Find(a)] = Find(b); }
  // All sets, each in ascending order.
  std::map<NodeId, std::vector<NodeId>> All() {
    std::map<NodeId, std::vector<NodeId>> sets;
    std::vector<NodeId> members;
    for (const auto& [id, parent] : parent_) members.push_back(id);
    for (NodeId id : members) sets[Find(id)].push_back(id);
    return sets;
  }

 private:
  std::map<NodeId, NodeId> parent_;
};

absl::StatusOr<float> Number(const Graph& graph, Endpoint constant) {
  OPTFARM_ASSIGN_OR_RETURN(const FloatView view,
                           FloatView::Of(graph.node(constant.node)));
  if (view.values().size() != 1) {
    return absl::FailedPreconditionError("a range is not a number");
  }
  return view.values()[0];
}

// Gives all requantizations among `members` the union of their ranges. No
// effect when one of them is not constant.
absl::Status UniteRanges(const std::vector<NodeId>& members, Graph* graph,
                         TransformContext* context) {
  std::vector<NodeId> sources;
  for (NodeId id : members) {
    const graph::Node& node = graph->node(id);
    if (IsJoin(node) || KeepsRange(node)) continue;
    if (!IsRequantize(node) || !HasConstantRange(*graph, node)) {
      return absl::OkStatus();
    }
    sources.push_back(id);
  }
  if (sources.size() < 2) return absl::OkStatus();
  float min = 0, max = 0;
  for (NodeId id : sources) {
    OPTFARM_ASSIGN_OR_RETURN(const float low,
                             Number(*graph, graph->node(id).inputs()[3]));
    OPTFARM_ASSIGN_OR_RETURN(const float high,
                             Number(*graph, graph->node(id).inputs()[4]));
    min = std::min(min, low);
    max = std::max(max, high);
  }
  const std::string& name = graph->node(sources[0]).name();
  const NodeId low =
      graph->Add(MakeScalarConst(absl::StrCat(name, "/joined_min"), min), {},
                 {}, sources[0]);
  const NodeId high =
      graph->Add(MakeScalarConst(absl::StrCat(name, "/joined_max"), max), {},
                 {}, sources[0]);
  for (NodeId id : sources) {
    graph->SetInput(id, 3, {low, 0});
    graph->SetInput(id, 4, {high, 0});
    context->CountChange();
  }
  return absl::OkStatus();
}

absl::Status UniteJoinedRanges(Graph* graph, TransformContext* context) {
  Sets sets;
  for (NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    // By the minima: quantized values may have been moved since, as bytes.
    if (KeepsRange(node)) {
      sets.Join(id, node.inputs()[RangeInputOf(node)].node);
    }
    if (!IsJoin(node)) continue;
    const auto count = graph::GetInt(node.def(), "N").value_or(int64_t{0});
    for (int64_t i = 0; i < count; ++i) {
      sets.Join(id, node.inputs()[static_cast<size_t>(count + 1 + i)].node);
    }
  }
  for (const auto& [root, members] : sets.All()) {
    OPTFARM_RETURN_IF_ERROR(UniteRanges(members, graph, context));
  }
  return absl::OkStatus();
}

// --- One op for a layer ------------------------------------------------------

// Whether nothing but `reader` and `other` uses the node.
bool IsUsedOnlyBy(const graph::Node& node, NodeId reader, NodeId other) {
  return std::all_of(node.uses().begin(), node.uses().end(),
                     [&](const graph::Use& use) {
                       return !use.is_control() &&
                              (use.consumer == reader || use.consumer == other);
                     });
}

// Puts outputs 0, 1 and 2 of `to` in the place of those of `from`.
void Replace(NodeId from, NodeId to, Graph* graph) {
  for (int port = 0; port < 3; ++port) {
    graph->RedirectUses({from, port}, {to, port});
  }
  graph->RedirectControlUses(from, to);
  graph->Remove(from);
}

bool FuseLayer(NodeId id, Graph* graph) {
  const graph::Node& requantize = graph->node(id);
  const NodeId source = requantize.inputs()[0].node;
  const graph::Node& layer = graph->node(source);
  const std::string fused = absl::StrCat(layer.op(), "AndRequantize");
  if (!graph::IsQuantizedLayer(layer.op()) ||
      graph::FindOpDef(fused) == nullptr ||
      !ReadsValuesAndRange(requantize, 0, source) ||
      !HasConstantRange(*graph, requantize) || !IsUsedOnlyBy(layer, id, id)) {
    return false;
  }
  std::vector<Endpoint> inputs(layer.inputs().begin(), layer.inputs().end());
  inputs.push_back(requantize.inputs()[3]);
  inputs.push_back(requantize.inputs()[4]);
  graph->SetInputs(source, inputs);
  tensorflow::NodeDef* def = graph->mutable_node(source)->mutable_def();
  const bool is_matrix =
      graph::RowOf(def->op()).layer.product == graph::LayerProduct::kMatrix;
  def->set_op(fused);
  graph::SetType(def, "Tbias", tensorflow::DT_FLOAT);
  graph::SetType(def, is_matrix ? "Toutput" : "out_type",
                 tensorflow::DT_QUINT8);
  Replace(id, source, graph);
  return true;
}

// Also where the range is found at each run: then that of the floats serves.
bool FuseQuantize(NodeId id, Graph* graph) {
  const graph::Node& requantize = graph->node(id);
  const NodeId source = requantize.inputs()[0].node;
  const graph::Node& quantize = graph->node(source);
  if (!graph::HasRole(requantize.op(), graph::OpRole::kRequantize) ||
      !IsQuantize(quantize, tensorflow::DT_QINT32) ||
      !ReadsValuesAndRange(requantize, 0, source)) {
    return false;
  }
  const NodeId range = requantize.inputs()[3].node;
  const bool is_dynamic = graph::HasRole(graph->node(range).op(),
                                         graph::OpRole::kRequantizationRange) &&
                          requantize.inputs()[4] == Endpoint{range, 1} &&
                          ReadsValuesAndRange(graph->node(range), 0, source);
  if ((!is_dynamic && !HasConstantRange(*graph, requantize)) ||
      !IsUsedOnlyBy(quantize, id, range)) {
    return false;
  }
  if (!is_dynamic) {
    graph->SetInput(source, 1, requantize.inputs()[3]);
    graph->SetInput(source, 2, requantize.inputs()[4]);
  }
  graph::SetType(graph->mutable_node(source)->mutable_def(), "T",
                 tensorflow::DT_QUINT8);
  // Cut first: the range must not be left reading quantized values of 8 bits.
  for (int port = 0; port < 3; ++port) {
    graph->RedirectUses({id, port}, {source, port});
  }
  graph->RedirectControlUses(id, source);
  graph->Remove(id);
  if (is_dynamic && graph->node(range).uses().empty()) graph->Remove(range);
  return true;
}

absl::Status FuseRequantization(Graph* graph, TransformContext* context) {
  OPTFARM_RETURN_IF_ERROR(UniteJoinedRanges(graph, context));
  for (NodeId id : graph->Ids()) {
    if (!graph->Has(id) || !IsRequantize(graph->node(id))) continue;
    if (FuseLayer(id, graph) || FuseQuantize(id, graph)) {
      context->CountChange();
    }
  }
  context->CountChange(FoldKnownRanges(graph));
  return absl::OkStatus();
}

}  // namespace

TransformDef FuseRequantizationTransform() {
  return {.name = "fuse_requantization",
          .summary =
              "Fuses requantization into 8-bit layers whose range is "
              "constant.",
          .parameters = {},
          .run = FuseRequantization};
}

}  // namespace optfarm::transforms
