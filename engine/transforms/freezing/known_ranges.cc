#include "engine/transforms/freezing/known_ranges.h"

#include <algorithm>
#include <cmath>

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Range;
using runtime::Tensor;

// Ops between a range and the constants it comes from.
constexpr int kMostSteps = 256;

// Whether its last two inputs are the range of the quantized values it gives.
bool GivesRange(const graph::Node& node) {
  const graph::OpRow& row = graph::RowOf(node.op());
  return row.range_input >= 0 && row.output_range_input >= 0;
}

std::optional<float> NumberOf(const Graph& graph, Endpoint tensor) {
  const graph::Node& node = graph.node(tensor.node);
  if (!IsConst(node) || tensor.port != 0) return std::nullopt;
  const auto view = FloatView::Of(node);
  if (!view.ok() || view->values().size() != 1 ||
      !std::isfinite(view->values()[0])) {
    return std::nullopt;
  }
  return view->values()[0];
}

// One end of a range, on the way back to a constant.
struct RangeEnd {
  Endpoint tensor;
  float factor = 1.0f;
  // An op on the way includes zero in the range (5).
  bool has_zero = false;
};

// Outputs 1 and 2 of ops on quantized values are the minimum and the maximum.
bool StepBack(const Graph& graph, RangeEnd* end) {
  const graph::Node& node = graph.node(end->tensor.node);
  const absl::Span<const Endpoint> inputs = node.inputs();
  const int port = end->tensor.port;
  if (graph::IsMultiply(node.op()) && inputs.size() == 2) {
    const auto factor = NumberOf(graph, inputs[1]);
    if (!factor.has_value() || *factor <= 0) return false;
    end->factor *= *factor;
    end->tensor = inputs[0];
    return true;
  }
  if (port != 1 && port != 2) return false;
  size_t first = 0;
  if (KeepsRange(node)) {
    first = static_cast<size_t>(RangeInputOf(node));
  } else if (GivesRange(node) && inputs.size() >= 5) {
    first = inputs.size() - 2;
    end->has_zero |= !graph::HasRole(node.op(), graph::OpRole::kRequantize);
  } else {
    return false;
  }
  if (inputs.size() < first + 2) return false;
  end->tensor = inputs[first + static_cast<size_t>(port) - 1];
  return true;
}

// Which end it is says the op that gives it.
std::optional<float> KnownEnd(const Graph& graph, Endpoint tensor,
                              bool is_min) {
  RangeEnd end{tensor};
  for (int i = 0; i < kMostSteps; ++i) {
    if (const auto number = NumberOf(graph, end.tensor)) {
      const float with_zero =
          is_min ? std::min(*number, 0.0f) : std::max(*number, 0.0f);
      return (end.has_zero ? with_zero : *number) * end.factor;
    }
    if (!StepBack(graph, &end)) break;
  }
  return std::nullopt;
}

void BecomeConst(NodeId id, const Tensor& value, Graph* graph) {
  graph->SetInputs(id, {});
  graph::Node* node = graph->mutable_node(id);
  node->mutable_def()->set_op("Const");
  SetConstValue(node, value);
}

bool HasOneOutput(const graph::Node& node) {
  return std::all_of(node.uses().begin(), node.uses().end(),
                     [](const graph::Use& use) { return use.port == 0; });
}

// Replaces the quantization of a constant by its result.
bool FoldQuantized(NodeId id, Graph* graph) {
  const graph::Node& node = graph->node(id);
  if (!IsQuantize(node, tensorflow::DT_QUINT8) || node.inputs().size() != 3 ||
      !HasOneOutput(node)) {
    return false;
  }
  const auto number = NumberOf(*graph, node.inputs()[0]);
  const auto range = KnownRange(*graph, node.inputs()[1], node.inputs()[2]);
  if (!number.has_value() || !range.has_value()) return false;
  Tensor byte =
      Tensor::Scalar<uint8_t>(runtime::Quantize<uint8_t>(*number, *range));
  BecomeConst(id, byte.Reinterpreted(tensorflow::DT_QUINT8), graph);
  return true;
}

// An end of a scaled range.
bool FoldEnd(NodeId id, Graph* graph) {
  const graph::Node& node = graph->node(id);
  if (!graph::IsMultiply(node.op()) || node.inputs().size() != 2) return false;
  const Endpoint end = node.inputs()[0];
  const graph::Node& source = graph->node(end.node);
  if (end.port < 1 || (!KeepsRange(source) && !GivesRange(source))) {
    return false;
  }
  const auto number = KnownEnd(*graph, {id, 0}, end.port == 1);
  if (!number.has_value()) return false;
  BecomeConst(id, Tensor::Scalar<float>(*number), graph);
  return true;
}

}  // namespace

bool KeepsRange(const graph::Node& node) {
  const graph::OpRow& row = graph::RowOf(node.op());
  return row.keeps_range && row.activation == graph::Activation::kNone;
}

int RangeInputOf(const graph::Node& node) {
  return graph::RowOf(node.op()).range_input;
}

std::optional<Range> KnownRange(const Graph& graph, Endpoint min,
                                Endpoint max) {
  const auto low = KnownEnd(graph, min, true);
  const auto high = KnownEnd(graph, max, false);
  if (!low.has_value() || !high.has_value()) return std::nullopt;
  return Range{*low, *high};
}

int FoldKnownRanges(Graph* graph) {
  int folded = 0;
  for (NodeId id : graph->Ids()) {
    folded += FoldQuantized(id, graph) || FoldEnd(id, graph) ? 1 : 0;
  }
  return folded;
}

}  // namespace optfarm::transforms
