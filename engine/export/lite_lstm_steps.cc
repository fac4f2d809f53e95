// TensorFlow Lite's LSTM, with all of its options. Where a cell_scale is given,
// gates and state are rounded in each step.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/export/recurrent_steps.h"
#include "engine/export/step_nodes.h"
#include "engine/graph/attr.h"

namespace optfarm::exporting {
namespace {

using graph::Endpoint;
using graph::Node;
using graph::NodeId;
using graph::PartialShape;

constexpr int64_t kMostSteps = 512;
// Of the integer kernel: gates before and after their functions, and how many
// values its wide and narrow integers have.
constexpr float kGateStep = 1.0f / 4096, kFunctionStep = 1.0f / 32768;
constexpr float kWide = 65536, kNarrow = 256;
constexpr float kLayerNormEpsilon = 1e-8f;

enum Input {
  kX,
  kHidden,
  kCell,
  kInputWeights,
  kRecurrentWeights,
  kBias,
  kPeephole,
  kProjection,
  kProjectionBias,
  kLayerNorm
};

struct LiteLstm {
  bool is_time_major = false, couples_gates = false;
  std::string function = "tanh";
  float cell_clip = 0, projection_clip = 0;
  // 0: not rounded.
  float cell_scale = 0, hidden_scale = 0, output_scale = 0;
  int64_t hidden_zero = 0, output_zero = 0;
  int64_t steps = 0, inputs = 0, cells = 0;
};

class Steps {
 public:
  Steps(const LiteLstm& lstm, const Node& node, const graph::ShapeMap& shapes,
        StepNodes* nodes)
      : l_(lstm), node_(node), shapes_(shapes), nodes_(*nodes) {}

  std::vector<Endpoint> Run() {
    const int64_t rows = (l_.couples_gates ? 3 : 4) * l_.cells;
    // Steps stand in front.
    const Endpoint x = l_.is_time_major ? In(kX) : nodes_.Swapped(In(kX));
    Endpoint sums =
        nodes_.Product(nodes_.Reshaped(x, {-1, l_.inputs}), In(kInputWeights));
    // A normalized gate gets its bias behind the norm.
    if (!IsGiven(kLayerNorm)) sums = nodes_.Add("BiasAdd", {sums, In(kBias)});
    const std::vector<Endpoint> from_input = nodes_.Unpacked(
        nodes_.Reshaped(sums, {l_.steps, -1, rows}), l_.steps, 0);
    h_ = In(kHidden);
    c_ = In(kCell);
    std::vector<Endpoint> hidden;
    for (const Endpoint& step : from_input) {
      Step(step);
      hidden.push_back(h_);
    }
    return {nodes_.Packed(hidden, l_.is_time_major ? 0 : 1), h_, c_};
  }

 private:
  Endpoint In(Input input) const { return node_.inputs()[input]; }
  bool IsGiven(Input input) const {
    return shapes_.Of(In(input)).elements() != 0;
  }
  bool is_rounded() const { return l_.cell_scale > 0; }

  // Gate `i` of a vector with a part for each.
  Endpoint Part(Input input, int64_t i) {
    return nodes_.Sliced(In(input), {i * l_.cells}, {l_.cells});
  }

  // To the nearest of `values` steps around a zero point; as it is for step 0.
  Endpoint Rounded(Endpoint x, float step, float values, int64_t zero = 0) {
    if (!(step > 0)) return x;
    const float least = -values / 2 - static_cast<float>(zero);
    const Endpoint number = nodes_.Number(step);
    const Endpoint steps =
        nodes_.Add("Round", {nodes_.Add("RealDiv", {x, number})});
    return nodes_.Add(
        "Mul", {nodes_.Bounded(steps, least, least + values - 1), number});
  }

  Endpoint Function(const std::string& name, Endpoint x) {
    if (name == "none") return x;
    if (name == "relu_n1_to_1") return nodes_.Bounded(x, -1, 1);
    return nodes_.Add(name == "tanh"    ? "Tanh"
                      : name == "relu"  ? "Relu"
                      : name == "relu6" ? "Relu6"
                                        : "Sigmoid",
                      {x});
  }

  Endpoint Normalized(Endpoint x, int64_t row) {
    const Endpoint centred = nodes_.Add("Sub", {x, nodes_.Mean(x)});
    const Endpoint variance = nodes_.Mean(nodes_.Add("Square", {centred}));
    const Endpoint deviation = nodes_.Add(
        "Sqrt",
        {nodes_.Add("AddV2", {variance, nodes_.Number(kLayerNormEpsilon)})});
    return nodes_.Add("Mul", {nodes_.Add("RealDiv", {centred, deviation}),
                              Part(kLayerNorm, row)});
  }

  // The value of gate `row` (input, forget, cell, output) from its sum.
  Endpoint Gate(Endpoint sum, int64_t row, const std::string& function,
                int64_t peephole) {
    if (peephole >= 0 && IsGiven(kPeephole)) {
      sum = nodes_.Add(
          "AddV2", {sum, nodes_.Add("Mul", {c_, Part(kPeephole, peephole)})});
    }
    if (IsGiven(kLayerNorm)) {
      const int64_t bias = l_.couples_gates ? row - 1 : row;
      sum = nodes_.Add("AddV2", {Normalized(sum, row), Part(kBias, bias)});
    }
    if (is_rounded()) sum = Rounded(sum, kGateStep, kWide);
    const Endpoint value = Function(function, sum);
    return is_rounded() ? Rounded(value, kFunctionStep, kWide) : value;
  }

  void Step(Endpoint from_input) {
    const Endpoint all = nodes_.Add(
        "AddV2", {from_input, nodes_.Product(h_, In(kRecurrentWeights))});
    std::vector<Endpoint> gates =
        nodes_.Split(all, l_.couples_gates ? 3 : 4, 1);
    if (l_.couples_gates) gates.insert(gates.begin(), Endpoint{});
    const Endpoint forget = Gate(gates[1], 1, "sigmoid", 1);
    const Endpoint input = l_.couples_gates
                               ? nodes_.Add("Sub", {nodes_.Number(1), forget})
                               : Gate(gates[0], 0, "sigmoid", 0);
    const Endpoint update = Gate(gates[2], 2, l_.function, -1);
    const Endpoint kept = nodes_.Add("Mul", {forget, c_});
    const Endpoint taken = nodes_.Add("Mul", {input, update});
    const Endpoint sum =
        nodes_.Add("AddV2", {Rounded(kept, l_.cell_scale, kWide),
                             Rounded(taken, l_.cell_scale, kWide)});
    c_ = Rounded(nodes_.Clipped(sum, l_.cell_clip), l_.cell_scale, kWide);
    const Endpoint output = Gate(gates[3], 3, "sigmoid", 2);
    Endpoint bent = Function(l_.function, c_);
    if (is_rounded()) bent = Rounded(bent, kFunctionStep, kWide);
    h_ = Projected(Rounded(nodes_.Add("Mul", {output, bent}), l_.hidden_scale,
                           kNarrow, l_.hidden_zero));
  }

  Endpoint Projected(Endpoint hidden) {
    if (IsGiven(kProjection)) {
      hidden = nodes_.Product(hidden, In(kProjection));
      if (IsGiven(kProjectionBias)) {
        hidden = nodes_.Add("BiasAdd", {hidden, In(kProjectionBias)});
      }
      hidden = nodes_.Clipped(hidden, l_.projection_clip);
    }
    return Rounded(hidden, l_.output_scale, kNarrow, l_.output_zero);
  }

  const LiteLstm& l_;
  const Node& node_;
  const graph::ShapeMap& shapes_;
  StepNodes& nodes_;
  Endpoint h_, c_;
};

absl::Status ReadAttributes(const Node& node, LiteLstm* lstm) {
  const tensorflow::NodeDef& def = node.def();
  OPTFARM_ASSIGN_OR_RETURN(lstm->is_time_major,
                           graph::GetBoolOr(def, "time_major", false));
  OPTFARM_ASSIGN_OR_RETURN(lstm->couples_gates,
                           graph::GetBoolOr(def, "couples_gates", false));
  OPTFARM_ASSIGN_OR_RETURN(lstm->function,
                           graph::GetStringOr(def, "activation", "tanh"));
  const struct {
    const char* name;
    float* value;
  } numbers[] = {{"cell_clip", &lstm->cell_clip},
                 {"projection_clip", &lstm->projection_clip},
                 {"cell_scale", &lstm->cell_scale},
                 {"hidden_scale", &lstm->hidden_scale},
                 {"output_scale", &lstm->output_scale}};
  for (const auto& number : numbers) {
    OPTFARM_ASSIGN_OR_RETURN(*number.value,
                             graph::GetFloatOr(def, number.name, 0.0f));
  }
  OPTFARM_ASSIGN_OR_RETURN(lstm->hidden_zero,
                           graph::GetIntOr(def, "hidden_zero_point", 0));
  OPTFARM_ASSIGN_OR_RETURN(lstm->output_zero,
                           graph::GetIntOr(def, "output_zero_point", 0));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<UnrolledLayer>> UnrollLiteLstm(
    NodeId id, const graph::ShapeMap& shapes, graph::Graph* graph) {
  const Node& node = graph->node(id);
  if (node.inputs().size() <= kLayerNorm) {
    return absl::InvalidArgumentError("a recurrent layer lacks inputs");
  }
  LiteLstm lstm;
  OPTFARM_RETURN_IF_ERROR(ReadAttributes(node, &lstm));
  const PartialShape& x = shapes.Of(node.inputs()[kX]);
  const PartialShape& weights = shapes.Of(node.inputs()[kInputWeights]);
  const PartialShape& cells = shapes.Of(node.inputs()[kCell]);
  if (!x.has_rank() || x.rank() != 3 || !weights.has_rank() ||
      weights.rank() != 2 || !cells.has_rank() || cells.rank() != 2) {
    return std::optional<UnrolledLayer>();
  }
  lstm.steps = x.dim(lstm.is_time_major ? 0 : 1);
  lstm.inputs = weights.dim(1);
  lstm.cells = cells.dim(1);
  if (lstm.steps < 1 || lstm.steps > kMostSteps || lstm.inputs < 1 ||
      lstm.cells < 1) {
    return std::optional<UnrolledLayer>();
  }
  StepNodes nodes(graph, node.name(), tensorflow::DT_FLOAT);
  UnrolledLayer layer;
  layer.outputs = Steps(lstm, node, shapes, &nodes).Run();
  return std::optional<UnrolledLayer>(std::move(layer));
}

}  // namespace optfarm::exporting
