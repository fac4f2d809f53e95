#include "engine/optimize/layers/range_sites.h"

#include <utility>

#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/optimize/layers/layers.h"
#include "engine/transforms/folding/scale_channels.h"
#include "engine/transforms/freezing/freeze_quantize_ranges.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorName;

constexpr char kEightBit[] = "/eightbit";

}  // namespace

TensorName FloatTensorOf(const Graph& quantized, NodeId id) {
  while (id != graph::kNoNode) {
    const graph::Node& node = quantized.node(id);
    // What turns floats into quantized values, of 32 bits to find their range.
    if (graph::IsQuantize(node.op()) && !node.inputs().empty()) {
      const graph::Endpoint& floats = node.inputs()[0];
      return {quantized.node(floats.node).name(), floats.port};
    }
    absl::string_view name =
        absl::StripSuffix(node.name(), transforms::kScaledSuffix);
    if (absl::ConsumeSuffix(&name, kEightBit)) return {std::string(name), 0};
    // A sum's activation belongs to the node whose name the sum has.
    if ((graph::QuantizedActivationOf(node.op()) != graph::Activation::kRelu &&
         !graph::IsRequantize(node.op())) ||
        node.inputs().empty()) {
      break;
    }
    id = node.inputs()[0].node;
  }
  return {};
}

bool IsRangeOp(absl::string_view op) {
  return graph::IsRequantizationRange(op);
}

std::vector<RangeSite> FindRangeSites(const Graph& graph, bool with_quantizes) {
  const auto name_of = [&](graph::Endpoint tensor) {
    return TensorName{graph.node(tensor.node).name(), tensor.port};
  };
  std::vector<RangeSite> sites;
  const auto add = [&](NodeId id, bool is_quantize, float clip) {
    const graph::Node& node = graph.node(id);
    if (node.inputs().size() != 3) return;
    sites.push_back({node.name(), is_quantize, is_quantize,
                     name_of(node.inputs()[0]), name_of(node.inputs()[1]),
                     name_of(node.inputs()[2]), clip});
  };
  for (const NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (!IsRangeOp(node.op())) continue;
    add(id, false,
        graph::GetFloatOr(node.def(), "clip_value_max", 0).value_or(0.0f));
  }
  if (with_quantizes) {
    for (const NodeId id : transforms::QuantizesWithRangeOfRun(graph)) {
      add(id, true, 0);
    }
  }
  return sites;
}

absl::StatusOr<std::vector<RangeSite>> FloatSites(
    const Graph& quantized, const Graph& floats,
    absl::Span<const RangeSite> sites) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<bool> may_be_cut,
                           MayBeCutOff(floats));
  std::vector<RangeSite> found;
  for (const RangeSite& site : sites) {
    TensorName tensor =
        site.is_float
            ? site.value
            : FloatTensorOf(quantized, quantized.Find(site.value.node));
    const NodeId id = floats.Find(tensor.node);
    if (id == graph::kNoNode || may_be_cut[id]) continue;
    found.push_back(site);
    found.back().is_float = true;
    found.back().value = std::move(tensor);
  }
  return found;
}

}  // namespace optfarm::optimize
