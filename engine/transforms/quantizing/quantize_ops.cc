// The heart of quantize_nodes. A float node F becomes
//
//   each input x:  F_eightbit/x/reshape, .../min, .../max  -> .../quantize
//   F/eightbit                        the 8-bit op
//   F/eightbit/requant_range          \ only where the result has 32 bits
//   F/eightbit/requantize             /
//   F                                 Dequantize
//
// The shape constants carry no control edges (TensorFlow 2 adds them, 1.4 does
// not): ops in loops stay in float, and without the edges one pair of constants
// serves the whole graph once duplicates are merged.

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/nodes/static_shapes.h"
#include "engine/transforms/quantizing/quantizable_ops.h"
#include "engine/transforms/quantizing/quantize_passes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

class OpQuantizer {
 public:
  OpQuantizer(const QuantizeOptions& options, Graph* graph)
      : options_(options), graph_(graph) {}

  void Quantize(NodeId id, const graph::QuantizedForm& form) {
    const graph::Node& node = graph_->node(id);
    const NodeId quantized = AddQuantizedOp(id, form);
    const NodeId result =
        form.has_32_bit_result() ? AddRequantize(id, quantized) : quantized;
    CarryTshape(node, quantized);
    BecomeDequantize(id, ValuesAndRange(result), quantized, graph_);
  }

 private:
  NodeId AddQuantizedOp(NodeId id, const graph::QuantizedForm& form) {
    const graph::Node& node = graph_->node(id);
    std::vector<Endpoint> inputs, mins, maxs;
    absl::flat_hash_map<Endpoint, NodeId> quantized;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Endpoint input = node.inputs()[i];
      if (static_cast<int>(i) == form.plain_input) {
        inputs.push_back(input);
        continue;
      }
      // A tensor that is read twice is quantized once.
      const auto [it, is_new] = quantized.emplace(input, graph::kNoNode);
      if (is_new) it->second = AddQuantize(id, input);
      inputs.push_back({it->second, 0});
      mins.push_back({it->second, 1});
      maxs.push_back({it->second, 2});
    }
    if (form.has_separate_ranges) {
      inputs.insert(inputs.end(), mins.begin(), mins.end());
      inputs.insert(inputs.end(), maxs.begin(), maxs.end());
    } else {
      for (size_t i = 0; i < mins.size(); ++i) {
        inputs.push_back(mins[i]);
        inputs.push_back(maxs[i]);
      }
    }
    tensorflow::NodeDef def =
        MakeNode(absl::StrCat(node.name(), "/eightbit"), form.op, node);
    for (absl::string_view attribute : AttributesOf(form.copied)) {
      graph::CopyAttr(node.def(), attribute, &def);
    }
    for (absl::string_view attribute : AttributesOf(form.value_types)) {
      graph::SetType(&def, attribute, tensorflow::DT_QUINT8);
    }
    if (form.has_32_bit_result()) {
      graph::SetType(&def, form.result_type, tensorflow::DT_QINT32);
    }
    return graph_->Add(std::move(def), inputs, {}, id);
  }

  // The quantized values of `input`, with the range that it has at each run.
  NodeId AddQuantize(NodeId id, Endpoint input) {
    const graph::Node& node = graph_->node(id);
    const std::string suffix =
        input.port > 0 ? absl::StrCat("__port__", input.port) : "";
    const std::string base =
        absl::StrCat(node.name(), "_eightbit/", graph_->node(input.node).name(),
                     suffix, "/");
    const NodeId reshape_dims = graph_->Add(
        MakeVectorConst(absl::StrCat(base, "reshape_dims"), {-1}), {}, {}, id);
    const NodeId reduction_dims = graph_->Add(
        MakeVectorConst(absl::StrCat(base, "reduction_dims"), {0}), {}, {}, id);
    tensorflow::NodeDef reshape =
        MakeNode(absl::StrCat(base, "reshape"), "Reshape", node);
    graph::SetType(&reshape, "T", tensorflow::DT_FLOAT);
    const NodeId flat =
        graph_->Add(std::move(reshape), {input, {reshape_dims, 0}}, {}, id);
    std::vector<Endpoint> inputs = {input};
    for (const auto& [name, op] :
         {std::pair("min", "Min"), std::pair("max", "Max")}) {
      tensorflow::NodeDef def = MakeNode(absl::StrCat(base, name), op, node);
      graph::SetType(&def, "T", tensorflow::DT_FLOAT);
      graph::SetBool(&def, "keep_dims", false);
      inputs.push_back({graph_->Add(std::move(def),
                                    {{flat, 0}, {reduction_dims, 0}}, {}, id),
                        0});
    }
    return graph_->Add(MakeQuantize(absl::StrCat(base, "quantize"),
                                    tensorflow::DT_QUINT8, node),
                       inputs, {}, id);
  }

  // 8-bit values of the 32-bit result.
  NodeId AddRequantize(NodeId id, NodeId quantized) {
    const graph::Node& node = graph_->node(id);
    const std::string base = absl::StrCat(node.name(), "/eightbit/");
    std::vector<Endpoint> inputs = ValuesAndRange(quantized);
    if (options_.fallback_range.has_value()) {
      for (const auto& [name, value] :
           {std::pair("fallback_min", options_.fallback_range->min),
            std::pair("fallback_max", options_.fallback_range->max)}) {
        inputs.push_back(
            {graph_->Add(MakeScalarConst(absl::StrCat(base, name), value), {},
                         {}, id),
             0});
      }
    } else {
      tensorflow::NodeDef def = MakeNode(absl::StrCat(base, "requant_range"),
                                         "RequantizationRange", node);
      graph::SetType(&def, "Tinput", tensorflow::DT_QINT32);
      const NodeId range = graph_->Add(std::move(def), inputs, {}, id);
      inputs.push_back({range, 0});
      inputs.push_back({range, 1});
    }
    return graph_->Add(MakeRequantize(absl::StrCat(base, "requantize"), node),
                       inputs, {}, id);
  }

  // A Reshape by int64 needs its type said; int32 is the default, which
  // TensorFlow does not write either.
  void CarryTshape(const graph::Node& node, NodeId quantized) {
    const absl::StatusOr<tensorflow::DataType> type =
        graph::GetTypeOr(node.def(), "Tshape", tensorflow::DT_INT32);
    if (type.ok() && *type != tensorflow::DT_INT32) {
      graph::CopyAttr(node.def(), "Tshape",
                      graph_->mutable_node(quantized)->mutable_def());
    }
  }

  const QuantizeOptions& options_;
  Graph* graph_;
};

// Whether the node has a constant factor that is not stored as quantized
// values.
bool HasFloatWeights(const Graph& graph, const graph::Node& node) {
  if (!graph::IsFloatProduct(node.op())) return false;
  for (const Endpoint& input : node.inputs()) {
    if (IsConst(graph.node(input.node))) return true;
  }
  return false;
}

// Whether what `quantize` quantizes is, in its range too, what `floats`
// dequantizes.
bool IsRangeOf(const Graph& graph, const graph::Node& quantize, NodeId floats) {
  constexpr absl::string_view kOps[] = {"", "Min", "Max"};
  for (int i = 1; i <= 2; ++i) {
    const graph::Node& range = graph.node(quantize.inputs()[i].node);
    if (range.op() != kOps[i] || range.inputs().size() != 2) return false;
    const graph::Node& flat = graph.node(range.inputs()[0].node);
    const bool is_flat = graph::IsReshape(flat.op()) &&
                         !flat.inputs().empty() &&
                         flat.inputs()[0].node == floats;
    if (!is_flat && range.inputs()[0].node != floats) return false;
  }
  return true;
}

}  // namespace

absl::Status QuantizeOps(const QuantizeOptions& options,
                         TransformContext* context, Graph* graph) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           InferShapesWithInputs(*graph, *context));
  const QuantizationRules rules(*graph, shapes);
  OpQuantizer quantizer(options, graph);
  for (NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    const graph::QuantizedForm* form = FindQuantizedForm(node.op());
    if (form == nullptr || options.ignored_ops.contains(node.op()) ||
        options.excluded_nodes.contains(node.name()) ||
        (options.only_coded_weights && HasFloatWeights(*graph, node)) ||
        !rules.HasFloatTensors(*form, id)) {
      continue;
    }
    const std::string reason = rules.WhyFloat(*form, id);
    if (reason.empty()) {
      quantizer.Quantize(id, *form);
      context->CountChange();
    } else {
      context->Skip(node.name(), reason);
    }
  }
  return absl::OkStatus();
}

void DropRedundantQuantizations(Graph* graph) {
  for (NodeId id : graph->Ids()) {
    const graph::Node& quantize = graph->node(id);
    if (!IsQuantize(quantize, tensorflow::DT_QUINT8) ||
        quantize.inputs().size() != 3) {
      continue;
    }
    const NodeId floats = quantize.inputs()[0].node;
    if (!IsDequantize(graph->node(floats)) ||
        graph->node(floats).inputs().size() != 3 ||
        !IsRangeOf(*graph, quantize, floats)) {
      continue;
    }
    for (int port = 0; port < 3; ++port) {
      graph->RedirectUses({id, port}, graph->node(floats).inputs()[port]);
    }
  }
}

}  // namespace optfarm::transforms
