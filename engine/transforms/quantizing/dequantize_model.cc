// dequantize_model: a model that came quantized computes in float again.
//
//   DequantizeLinear(QuantizeLinear(x, s, z), s, z)   becomes   x
//
// where nothing else happens to the quantized values. Where the lowest of them
// stands for 0, quantizing also was a Relu, which is written then:
// quantizers leave Relu out for that reason. Dequantized constants become float
// when fold_constants runs.

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;

// The least of `bits` bits; nullopt for types that no activation has.
std::optional<int64_t> Lowest(tensorflow::DataType type, int64_t bits) {
  if (type == tensorflow::DT_UINT8 || type == tensorflow::DT_UINT16) return 0;
  if (type == tensorflow::DT_INT16) {
    return std::numeric_limits<int16_t>::min();
  }
  if (type != tensorflow::DT_INT8 || bits < 2 || bits > 8) return std::nullopt;
  return -(int64_t{1} << (bits - 1));
}

bool IsQuantization(const Node& node, const char* op) {
  return node.op() == op && node.inputs().size() == 3;
}

// Whether the constants hold the same elements.
bool AreEqual(const Graph& graph, graph::Endpoint a, graph::Endpoint b) {
  if (a == b) return true;
  const Node& one = graph.node(a.node);
  const Node& other = graph.node(b.node);
  if (!IsConst(one) || !IsConst(other)) return false;
  const auto x = ConstValue(one);
  const auto y = ConstValue(other);
  if (!x.ok() || !y.ok() || x->dtype() != y->dtype()) return false;
  if (x->dtype() == tensorflow::DT_FLOAT) {
    const auto left = x->flat<float>(), right = y->flat<float>();
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
  }
  const auto left = x->AsInt64s(), right = y->AsInt64s();
  return left.ok() && right.ok() && *left == *right;
}

// Whether the lowest quantized value stands for 0.
bool CutsBelowZero(const Graph& graph, const Node& quantize) {
  const Node& point = graph.node(quantize.inputs()[2].node);
  if (!IsConst(point)) return false;
  const auto value = ConstValue(point);
  if (!value.ok() || value->num_elements() != 1) return false;
  const auto number = value->AsInt64s();
  const auto bits = graph::GetIntOr(quantize.def(), "bits", 8);
  if (!number.ok() || !bits.ok()) return false;
  const std::optional<int64_t> lowest = Lowest(value->dtype(), *bits);
  return lowest.has_value() && number->front() == *lowest;
}

bool IsCutAlready(const Node& node) {
  return graph::ActivationOf(node.op()) != graph::Activation::kNone ||
         node.op() == "Softmax" || node.op() == "Sigmoid";
}

// What the quantized values stand for, in float.
graph::Endpoint InFloat(const Node& quantize, NodeId before, Graph* graph) {
  const graph::Endpoint source = quantize.inputs()[0];
  if (IsCutAlready(graph->node(source.node)) ||
      !CutsBelowZero(*graph, quantize)) {
    return source;
  }
  tensorflow::NodeDef relu;
  relu.set_op("Relu");
  relu.set_name(graph->FreeName(quantize.name() + "/cut"));
  graph::SetType(&relu, "T", tensorflow::DT_FLOAT);
  return {graph->Add(std::move(relu), {source}, {}, before), 0};
}

absl::Status DequantizeModel(Graph* graph, TransformContext* context) {
  for (const NodeId id : graph->Ids()) {
    const Node& node = graph->node(id);
    if (!IsQuantization(node, "DequantizeLinear")) continue;
    const NodeId source = node.inputs()[0].node;
    const Node& quantize = graph->node(source);
    if (IsConst(quantize)) continue;
    const auto type =
        graph::GetTypeOr(quantize.def(), "T", tensorflow::DT_FLOAT);
    if (!IsQuantization(quantize, "QuantizeLinear") || !type.ok() ||
        *type != tensorflow::DT_FLOAT) {
      context->Skip(node.name(), "its values are not just quantized");
      continue;
    }
    if (context->IsOutput(node.name()) || context->IsOutput(quantize.name())) {
      context->Skip(node.name(), "it is an output of the model");
      continue;
    }
    if (!AreEqual(*graph, node.inputs()[1], quantize.inputs()[1]) ||
        !AreEqual(*graph, node.inputs()[2], quantize.inputs()[2])) {
      context->Skip(node.name(),
                    "it has another scale than " + quantize.name());
      continue;
    }
    graph->RedirectUses({id, 0}, InFloat(quantize, id, graph));
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef DequantizeModelTransform() {
  return {.name = "dequantize_model",
          .summary =
              "Takes QuantizeLinear and DequantizeLinear out of a model that "
              "came quantized, which then computes in float.",
          .parameters = {},
          .run = DequantizeModel};
}

}  // namespace optfarm::transforms
