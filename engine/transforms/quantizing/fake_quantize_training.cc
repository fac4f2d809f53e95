// fake_quantize_training: prepares a training graph for 8 bits. What forward
// convolutions and matrix products read is rounded to 256 levels on the way
// (the gradients see it unrounded); the range follows the tensor's least and
// greatest values with moving averages that are trained along. After training
// and freezing, remove_ema and quantize_nodes take it from there.
//
// A tensor x gets, below x/FakeQuantWithMinMaxVars/min (and .../max):
//
//   var = Assign(var, first run ? Min(x) : var - (var - Min(x)) * (1 - decay))

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/loop_nodes.h"
#include "engine/transforms/nodes/saved_variables.h"
#include "engine/transforms/quantizing/quantize_passes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

constexpr char kFakeQuant[] = "FakeQuantWithMinMaxVars";
constexpr float kDecay = 0.999f;

// TensorFlow puts the backward pass below this name.
bool IsGradient(const graph::Node& node) {
  return absl::StartsWith(node.name(), "gradients");
}

bool IsQuantizable(const graph::Node& node) {
  return (node.op() == "MatMul" || node.op() == "Conv2D") && !IsGradient(node);
}

// Whether a tensor's values lie in a range because of the op that computes
// them. Ops that only choose or average values are looked through, of which
// TensorFlow's transform knows these.
std::optional<FloatRange> RangeByOp(const Graph& graph, Endpoint tensor) {
  static const absl::flat_hash_set<std::string>* const kRangePreserving =
      new absl::flat_hash_set<std::string>{"Identity", "Reshape", "MaxPool",
                                           "AvgPool",  "Squeeze", "MaxPool3D",
                                           "AvgPool3D"};
  // No model has more of them in a row; a cycle would have no end.
  constexpr int kMostSteps = 32;
  for (int i = 0; i < kMostSteps; ++i) {
    const graph::Node& node = graph.node(tensor.node);
    if (graph::ActivationOf(node.op()) == graph::Activation::kRelu6) {
      return FloatRange{0, 6};
    }
    if (node.op() == "Sigmoid") return FloatRange{0, 1};
    if (node.op() == "Tanh") return FloatRange{-1, 1};
    if (!kRangePreserving->contains(node.op()) || node.inputs().empty()) break;
    tensor = node.inputs()[0];
  }
  return std::nullopt;
}

// Adds nodes below one name, on the device of the tensor that they watch.
class NodeAdder {
 public:
  NodeAdder(std::string base, const graph::Node& like, NodeId before,
            Graph* graph)
      : base_(std::move(base)),
        device_(like.device()),
        before_(before),
        graph_(graph) {}

  NodeId Add(absl::string_view name, absl::string_view op,
             const std::vector<Endpoint>& inputs) {
    tensorflow::NodeDef def;
    def.set_op(std::string(op));
    return AddDef(name, std::move(def), inputs);
  }

  // With attribute T = float.
  NodeId AddFloat(absl::string_view name, absl::string_view op,
                  const std::vector<Endpoint>& inputs) {
    tensorflow::NodeDef def;
    def.set_op(std::string(op));
    graph::SetType(&def, "T", tensorflow::DT_FLOAT);
    return AddDef(name, std::move(def), inputs);
  }

  NodeId AddDef(absl::string_view name, tensorflow::NodeDef def,
                const std::vector<Endpoint>& inputs) {
    def.set_name(name.empty() ? base_ : absl::StrCat(base_, "/", name));
    def.set_device(device_);
    return graph_->Add(std::move(def), inputs, {}, before_);
  }

  tensorflow::NodeDef* Def(NodeId id) {
    return graph_->mutable_node(id)->mutable_def();
  }

 private:
  const std::string base_;
  const std::string device_;
  const NodeId before_;
  Graph* const graph_;
};

// All axes of a tensor, for a reduction.
NodeId AddAxes(Endpoint tensor, NodeAdder* add) {
  const auto number = [&](absl::string_view name, int32_t value) {
    return add->AddDef(
        name, MakeConst(name, runtime::Tensor::Scalar<int32_t>(value)), {});
  };
  const NodeId rank = add->AddFloat("axes/rank", "Rank", {tensor});
  const NodeId start = number("axes/start", 0);
  const NodeId step = number("axes/delta", 1);
  const NodeId axes =
      add->Add("axes", "Range", {{start, 0}, {rank, 0}, {step, 0}});
  graph::SetType(add->Def(axes), "Tidx", tensorflow::DT_INT32);
  return axes;
}

tensorflow::NodeDef MakeScalarVariable() {
  tensorflow::NodeDef def;
  def.set_op("VariableV2");
  graph::SetType(&def, "dtype", tensorflow::DT_FLOAT);
  (*def.mutable_attr())["shape"].mutable_shape();
  graph::SetString(&def, "container", "");
  graph::SetString(&def, "shared_name", "");
  return def;
}

// The moving average of a reduction of the tensor, and its variable.
struct Average {
  NodeId variable = graph::kNoNode;
  NodeId value = graph::kNoNode;
};

Average AddAverage(absl::string_view name, absl::string_view reduction,
                   Endpoint tensor, NodeId axes, NodeAdder* add) {
  const auto below = [&](absl::string_view part) {
    return absl::StrCat(name, "/", part);
  };
  const NodeId variable =
      add->AddDef(below("variable"), MakeScalarVariable(), {});
  const NodeId reduced =
      add->AddFloat(below(reduction), reduction, {tensor, {axes, 0}});
  graph::SetBool(add->Def(reduced), "keep_dims", false);
  graph::SetType(add->Def(reduced), "Tidx", tensorflow::DT_INT32);
  const NodeId initialized = add->Add(below("is_initialized"),
                                      "IsVariableInitialized", {{variable, 0}});
  graph::SetType(add->Def(initialized), "dtype", tensorflow::DT_FLOAT);
  const NodeId is_first = add->AddFloat(below("Switch"), "Switch",
                                        {{reduced, 0}, {initialized, 0}});
  const NodeId one =
      add->AddDef(below("one"), MakeScalarConst("one", 1.0f), {});
  const NodeId decay =
      add->AddDef(below("decay"), MakeScalarConst("decay", kDecay), {});
  const NodeId rate =
      add->AddFloat(below("rate"), "Sub", {{one, 0}, {decay, 0}});
  const NodeId distance =
      add->AddFloat(below("distance"), "Sub", {{variable, 0}, {is_first, 1}});
  const NodeId change =
      add->AddFloat(below("change"), "Mul", {{distance, 0}, {rate, 0}});
  const NodeId moved =
      add->AddFloat(below("moved"), "Sub", {{variable, 0}, {change, 0}});
  const NodeId merge =
      add->AddFloat(below("Merge"), "Merge", {{is_first, 0}, {moved, 0}});
  graph::SetInt(add->Def(merge), "N", 2);
  const NodeId assign =
      add->AddFloat(below("Assign"), "Assign", {{variable, 0}, {merge, 0}});
  graph::SetBool(add->Def(assign), "use_locking", true);
  graph::SetBool(add->Def(assign), "validate_shape", true);
  return {variable, assign};
}

class TrainingQuantizer {
 public:
  explicit TrainingQuantizer(Graph* graph) : graph_(graph) {}

  // The tensor after fake quantization, which `before` in file order reads.
  Endpoint Quantized(Endpoint tensor, NodeId before) {
    const auto [it, is_new] = quantized_.emplace(tensor, graph::kNoNode);
    if (is_new) it->second = Quantize(tensor, before);
    return {it->second, 0};
  }

  const std::vector<NodeId>& variables() const { return variables_; }

 private:
  NodeId Quantize(Endpoint tensor, NodeId before) {
    const graph::Node& source = graph_->node(tensor.node);
    const std::string suffix =
        tensor.port > 0 ? absl::StrCat("__port__", tensor.port) : "";
    NodeAdder add(absl::StrCat(source.name(), suffix, "/", kFakeQuant), source,
                  before, graph_);
    NodeId min = graph::kNoNode, max = graph::kNoNode;
    if (const auto range = RangeByOp(*graph_, tensor); range.has_value()) {
      min = add.AddDef("min", MakeScalarConst("min", range->min), {});
      max = add.AddDef("max", MakeScalarConst("max", range->max), {});
    } else {
      const NodeId axes = AddAxes(tensor, &add);
      const Average least = AddAverage("min", "Min", tensor, axes, &add);
      const Average greatest = AddAverage("max", "Max", tensor, axes, &add);
      variables_.insert(variables_.end(), {least.variable, greatest.variable});
      min = least.value;
      max = greatest.value;
    }
    const NodeId quant = add.Add("", kFakeQuant, {tensor, {min, 0}, {max, 0}});
    graph::SetInt(add.Def(quant), "num_bits", 8);
    graph::SetBool(add.Def(quant), "narrow_range", false);
    return quant;
  }

  Graph* graph_;
  absl::flat_hash_map<Endpoint, NodeId> quantized_;
  std::vector<NodeId> variables_;
};

absl::Status FakeQuantizeTraining(Graph* graph, TransformContext* context) {
  TrainingQuantizer quantizer(graph);
  const std::vector<bool> in_loop = NodesInLoops(*graph);
  for (NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (!IsQuantizable(node) || node.inputs().size() != 2) continue;
    const absl::StatusOr<tensorflow::DataType> type =
        graph::GetType(node.def(), "T");
    if (!type.ok() || *type != tensorflow::DT_FLOAT) {
      context->Skip(node.name(), "it does not compute with float");
      continue;
    }
    if (in_loop[id]) {
      context->Skip(node.name(),
                    "it runs inside a loop, where averages have no variables");
      continue;
    }
    for (int i = 0; i < 2; ++i) {
      const Endpoint input = graph->node(id).inputs()[i];
      // Quantized already, here or by the author of the model.
      if (graph->node(input.node).op() == kFakeQuant) continue;
      graph->SetInput(id, i, quantizer.Quantized(input, id));
    }
    context->CountChange();
  }
  AddToSavers(quantizer.variables(), context, graph);
  return absl::OkStatus();
}

}  // namespace

TransformDef FakeQuantizeTrainingTransform() {
  return {.name = "fake_quantize_training",
          .summary =
              "Inserts fake quantization to 8 bits before a training graph's "
              "convolutions and matrix multiplies; the ranges are trained "
              "too.",
          .parameters = {},
          .run = FakeQuantizeTraining};
}

}  // namespace optfarm::transforms
