#include "engine/optimize/judging/layer_alone.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/ops/op_table.h"
#include "engine/optimize/layers/range_sites.h"
#include "engine/transforms/folding/scale_channels.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"

namespace optfarm::optimize {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;

// Nodes between a layer's quantized values and what is float in both graphs,
// one behind the other.
constexpr int kMostDeep = 64;

bool IsScaled(const Node& node) {
  return absl::EndsWith(node.name(), transforms::kScaledSuffix);
}

bool IsDepthwise(const Node& node) {
  const graph::LayerForm& layer = graph::RowOf(node.op()).layer;
  return layer.is_quantized && layer.product == graph::LayerProduct::kDepthwise;
}

// The layers that read a scaled layer's channels, and those on the way there.
std::vector<NodeId> ReadersOfScaled(const Graph& graph, NodeId id) {
  std::vector<NodeId> found;
  std::vector<NodeId> open = {id};
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    for (const graph::Use& use : graph.node(at).uses()) {
      if (use.port != 0 ||
          std::find(found.begin(), found.end(), use.consumer) != found.end()) {
        continue;
      }
      found.push_back(use.consumer);
      if (!IsDepthwise(graph.node(use.consumer))) open.push_back(use.consumer);
    }
  }
  return found;
}

// Marks the nodes and all that is computed from them, in one iteration of a
// loop.
std::vector<bool> BehindAny(const Graph& graph,
                            absl::Span<const NodeId> nodes) {
  std::vector<bool> is_behind(graph.id_limit(), false);
  std::vector<NodeId> open(nodes.begin(), nodes.end());
  for (const NodeId id : nodes) is_behind[id] = true;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (const graph::Use& use : graph.node(id).uses()) {
      if (use.is_control() || is_behind[use.consumer] ||
          graph::IsNextIteration(graph.node(use.consumer).op())) {
        continue;
      }
      is_behind[use.consumer] = true;
      open.push_back(use.consumer);
    }
  }
  return is_behind;
}

class LayerCopier {
 public:
  LayerCopier(const Graph& floats, const Graph& result,
              const FixedRanges& ranges, absl::Span<const NodeId> group,
              Graph* alone)
      : floats_(floats),
        result_(result),
        ranges_(ranges),
        is_inside_(BehindAny(result, group)),
        alone_(alone) {}

  // Lets the float tensor of a layer be computed as the result does.
  absl::Status Replace(NodeId layer, const std::string& name) {
    const NodeId old = alone_->Find(name);
    if (old == graph::kNoNode) {
      return absl::UnimplementedError(
          absl::StrCat("what layer '", name, "' computes is no float tensor"));
    }
    alone_->Rename(old, absl::StrCat(name, "/float"));
    NodeId made = graph::kNoNode;
    const NodeId same = result_.Find(name);
    if (same != graph::kNoNode && is_inside_[same]) {
      OPTFARM_ASSIGN_OR_RETURN(const Endpoint value, Copy({same, 0}, 0));
      made = value.node;
    } else {
      OPTFARM_ASSIGN_OR_RETURN(const Endpoint value,
                               Copy({QuantizedOf(layer), 0}, 0));
      tensorflow::NodeDef def =
          transforms::MakeNode(name, "Dequantize", alone_->node(value.node));
      graph::SetType(&def, "T", tensorflow::DT_QUINT8);
      graph::SetString(&def, "mode", "MIN_FIRST");
      made =
          alone_->Add(std::move(def), transforms::ValuesAndRange(value.node));
    }
    alone_->RedirectUses({old, 0}, {made, 0});
    return absl::OkStatus();
  }

 private:
  // The node that gives the 8-bit values of a layer: itself, or what cuts its
  // 32 bits.
  NodeId QuantizedOf(NodeId layer) const {
    NodeId next = layer;
    while (next != graph::kNoNode) {
      layer = next;
      next = graph::kNoNode;
      for (const graph::Use& use : result_.node(layer).uses()) {
        const Node& reader = result_.node(use.consumer);
        if (use.port != 0) continue;
        if (graph::IsRequantize(reader.op())) return use.consumer;
        // A sum's activation is part of it.
        const bool is_part = graph::QuantizedActivationOf(reader.op()) ==
                                 graph::Activation::kRelu &&
                             LayerOf(reader.name()).empty();
        if (is_part) next = use.consumer;
      }
    }
    return layer;
  }

  // The same value in the graph that is made.
  absl::StatusOr<Endpoint> Copy(Endpoint from, int depth) {
    const Node& node = result_.node(from.node);
    if (const auto made = made_.find(from.node); made != made_.end()) {
      return Endpoint{made->second, from.port};
    }
    if (depth > kMostDeep) {
      return absl::UnimplementedError(absl::StrCat(
          "node '", node.name(), "' is too far from what is float"));
    }
    const bool is_other = !is_inside_[from.node] && !graph::IsConst(node.op());
    if (is_other && GivesQuantized(node)) {
      OPTFARM_ASSIGN_OR_RETURN(const NodeId values, QuantizeFloats(from.node));
      made_.emplace(from.node, values);
      return Endpoint{values, from.port};
    }
    if (is_other && floats_.Find(node.name()) != graph::kNoNode) {
      return Endpoint{alone_->Find(node.name()), from.port};
    }
    std::vector<Endpoint> inputs;
    for (const Endpoint& input : node.inputs()) {
      OPTFARM_ASSIGN_OR_RETURN(inputs.emplace_back(), Copy(input, depth + 1));
    }
    const NodeId id = alone_->Add(node.def(), inputs);
    made_.emplace(from.node, id);
    return Endpoint{id, from.port};
  }

  // Whether the last two inputs are constants, within a loop too: the range of
  // what the node cuts to 8 bits.
  bool IsFrozen(const Node& node) const {
    if (!absl::StrContains(node.op(), "Requantize") ||
        node.inputs().size() < 2) {
      return false;
    }
    for (const Endpoint& end : node.inputs().last(2)) {
      const Node* from = &result_.node(end.node);
      if (graph::IsEnter(from->op()))
        from = &result_.node(from->inputs()[0].node);
      if (!graph::IsConst(from->op())) return false;
    }
    return true;
  }

  // Quantizes the float tensor that a node of the result has quantized values
  // of.
  absl::StatusOr<NodeId> QuantizeFloats(NodeId id) {
    const Node& node = result_.node(id);
    const graph::TensorName name = FloatTensorOf(result_, id);
    const NodeId floats = alone_->Find(name.node);
    if (floats == graph::kNoNode) {
      return absl::UnimplementedError(
          absl::StrCat("no float tensor is known for the quantized values of '",
                       node.name(), "'"));
    }
    std::vector<Endpoint> inputs = {{floats, name.port}};
    if (const auto fixed = ranges_.find(id); fixed != ranges_.end()) {
      for (const float end : {fixed->second.min, fixed->second.max}) {
        inputs.push_back(
            {alone_->Add(transforms::MakeScalarConst(
                             absl::StrCat(node.name(), "/range"), end),
                         {}),
             0});
      }
    } else if (IsFrozen(node)) {
      for (const Endpoint& end : node.inputs().last(2)) {
        OPTFARM_ASSIGN_OR_RETURN(inputs.emplace_back(), Copy(end, 0));
      }
    } else {
      AddRangeOfRun(inputs[0], &inputs);
    }
    return alone_->Add(
        transforms::MakeQuantize(absl::StrCat(node.name(), "/codes"),
                                 tensorflow::DT_QUINT8, node),
        inputs);
  }

  void AddRangeOfRun(Endpoint value, std::vector<Endpoint>* inputs) {
    const std::string base = alone_->node(value.node).name();
    const auto add = [&](absl::string_view op, Endpoint of, int32_t argument) {
      const NodeId vector =
          alone_->Add(transforms::MakeVectorConst(
                          absl::StrCat(base, "/", op, "_of"), {argument}),
                      {});
      tensorflow::NodeDef def = transforms::MakeNode(
          absl::StrCat(base, "/", op), op, alone_->node(value.node));
      graph::SetType(&def, "T", tensorflow::DT_FLOAT);
      return Endpoint{alone_->Add(std::move(def), {of, {vector, 0}}), 0};
    };
    const Endpoint flat = add("Reshape", value, -1);
    inputs->push_back(add("Min", flat, 0));
    inputs->push_back(add("Max", flat, 0));
  }

  const Graph& floats_;
  const Graph& result_;
  const FixedRanges& ranges_;
  // The layers and what is computed from them.
  const std::vector<bool> is_inside_;
  // By node of the result.
  std::map<NodeId, NodeId> made_;
  Graph* alone_;
};

}  // namespace

std::string LayerOf(absl::string_view name) {
  name = absl::StripSuffix(name, transforms::kScaledSuffix);
  if (!absl::ConsumeSuffix(&name, "/eightbit")) return "";
  return std::string(absl::StripSuffix(name, "/normalized"));
}

bool GivesQuantized(const Node& node) {
  return absl::StartsWith(node.op(), "Quantized") ||
         absl::StartsWith(node.op(), "Requantize");
}

absl::StatusOr<LayerSet> FindLayerSet(const Graph& result) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(result));
  LayerSet set;
  std::map<NodeId, size_t> group_of;
  for (const NodeId id : order) {
    if (LayerOf(result.node(id).name()).empty()) continue;
    set.layers.push_back(id);
    group_of.emplace(id, group_of.size());
  }
  for (const NodeId id : set.layers) {
    if (!IsScaled(result.node(id))) continue;
    for (const NodeId reader : ReadersOfScaled(result, id)) {
      const auto other = group_of.find(reader);
      if (other == group_of.end()) continue;
      const size_t from = other->second, to = group_of[id];
      for (auto& [layer, group] : group_of) {
        if (group == from) group = to;
      }
    }
  }
  // Numbered anew.
  std::map<size_t, size_t> numbers;
  for (const NodeId id : set.layers) {
    const auto [at, is_new] = numbers.emplace(group_of[id], set.groups.size());
    if (is_new) set.groups.emplace_back();
    set.groups[at->second].push_back(id);
    set.group_of.push_back(at->second);
  }
  return set;
}

absl::StatusOr<AloneGraph> PutAlone(const Graph& floats, const Graph& result,
                                    const FixedRanges& ranges,
                                    absl::Span<const NodeId> group) {
  AloneGraph alone;
  alone.graph = floats.Clone();
  LayerCopier copier(floats, result, ranges, group, &alone.graph);
  for (const NodeId id : group) {
    // Read in the group alone, and not what the float graph has there.
    if (IsScaled(result.node(id))) continue;
    const std::string name = LayerOf(result.node(id).name());
    OPTFARM_RETURN_IF_ERROR(copier.Replace(id, name));
    alone.computed.push_back(name);
  }
  return alone;
}

}  // namespace optfarm::optimize
