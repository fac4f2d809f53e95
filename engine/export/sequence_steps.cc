// LSTM, GRU and plain layers as ONNX defines them.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/export/recurrent_steps.h"
#include "engine/export/step_nodes.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/nn/recurrent_activation.h"

namespace optfarm::exporting {
namespace {

using graph::Endpoint;
using graph::Node;
using graph::NodeId;
using graph::PartialShape;
using runtime::RecurrentActivation;

// Longer sequences would make files of steps.
constexpr int64_t kMostSteps = 512;

enum Input { kX, kWeights, kRecurrent, kBias, kLengths, kHidden, kCell, kPeep };

struct Sequence {
  LayerKind kind = LayerKind::kLstm;
  int64_t steps = 0, depth = 0, hidden = 0, gates = 1, directions = 1;
  // -1: not known.
  int64_t batch = -1;
  bool is_reverse = false, couples_gates = false, resets_product = false;
  float clip = 0;
  std::vector<RecurrentActivation> functions;
};

int64_t GatesOf(LayerKind kind) {
  return kind == LayerKind::kLstm ? 4 : kind == LayerKind::kGru ? 3 : 1;
}

std::vector<absl::string_view> UsualFunctions(LayerKind kind) {
  switch (kind) {
    case LayerKind::kLstm:
      return {"sigmoid", "tanh", "tanh"};
    case LayerKind::kGru:
      return {"sigmoid", "tanh"};
    case LayerKind::kRnn:
      return {"tanh"};
  }
  return {};
}

// One direction of a layer.
class Direction {
 public:
  Direction(const Sequence& sequence, const Node& node, int64_t number,
            const graph::ShapeMap& shapes, StepNodes* nodes)
      : s_(sequence),
        node_(node),
        number_(number),
        shapes_(shapes),
        nodes_(*nodes),
        functions_(s_.functions.data() +
                   number * static_cast<int64_t>(s_.functions.size()) /
                       s_.directions) {}

  void Run() {
    ReadWeights();
    const bool is_backward = s_.is_reverse || number_ == 1;
    hidden_.resize(static_cast<size_t>(s_.steps));
    for (int64_t i = 0; i < s_.steps; ++i) {
      const int64_t step = is_backward ? s_.steps - 1 - i : i;
      const Endpoint before = h_, cell_before = c_;
      const Endpoint x = from_input_[static_cast<size_t>(step)];
      if (s_.kind == LayerKind::kLstm) {
        StepLstm(x);
      } else if (s_.kind == LayerKind::kGru) {
        StepGru(x);
      } else {
        const Endpoint state = nodes_.Product(h_, recurrent_);
        h_ = Activated(0, nodes_.Add("AddV2", {x, state}));
      }
      hidden_[static_cast<size_t>(step)] = h_;
      if (IsGiven(kLengths)) Hold(step, before, cell_before);
    }
  }

  const std::vector<Endpoint>& hidden() const { return hidden_; }
  Endpoint last_hidden() const { return h_; }
  Endpoint last_cell() const { return c_; }

 private:
  bool IsGiven(size_t input) const {
    return input < node_.inputs().size() &&
           shapes_.Of(node_.inputs()[input]).elements() != 0;
  }

  // This direction's part, `count` rows from `first` on.
  Endpoint Part(Input input, int64_t first, int64_t count, int64_t columns) {
    const Endpoint all = node_.inputs()[input];
    if (columns == 0) {
      return nodes_.Reshaped(nodes_.Sliced(all, {number_, first}, {1, count}),
                             {count});
    }
    return nodes_.Reshaped(
        nodes_.Sliced(all, {number_, first, 0}, {1, count, columns}),
        {count, columns});
  }

  Endpoint State(Input input) {
    if (!IsGiven(input)) return nodes_.Zeros({s_.batch, s_.hidden});
    return nodes_.Reshaped(
        nodes_.Sliced(node_.inputs()[input], {number_, 0, 0}, {1, -1, -1}),
        {s_.batch, s_.hidden});
  }

  void ReadWeights() {
    const int64_t rows = s_.gates * s_.hidden, pair = 2 * s_.hidden;
    const bool is_gru = s_.kind == LayerKind::kGru;
    Endpoint sums =
        nodes_.Product(nodes_.Reshaped(node_.inputs()[kX], {-1, s_.depth}),
                       Part(kWeights, 0, rows, s_.depth));
    if (IsGiven(kBias)) sums = nodes_.Add("BiasAdd", {sums, Bias(rows)});
    from_input_ = nodes_.Unpacked(
        nodes_.Reshaped(sums, {s_.steps, s_.batch, rows}), s_.steps, 0);
    recurrent_ = Part(kRecurrent, 0, is_gru ? pair : rows, s_.hidden);
    if (is_gru) candidate_ = Part(kRecurrent, pair, s_.hidden, s_.hidden);
    h_ = State(kHidden);
    if (s_.kind != LayerKind::kLstm) return;
    c_ = State(kCell);
    if (!IsGiven(kPeep)) return;
    for (int64_t i = 0; i < 3; ++i) {
      peepholes_.push_back(Part(kPeep, i * s_.hidden, s_.hidden, 0));
    }
  }

  // What is added to the products of the input: both biases, but for the part
  // that a GRU resets together with its product.
  Endpoint Bias(int64_t rows) {
    const Endpoint from_input = Part(kBias, 0, rows, 0);
    if (s_.kind != LayerKind::kGru || !s_.resets_product) {
      return nodes_.Add("AddV2", {from_input, Part(kBias, rows, rows, 0)});
    }
    const int64_t pair = 2 * s_.hidden;
    candidate_bias_ = Part(kBias, rows + pair, s_.hidden, 0);
    const Endpoint gates = nodes_.Add(
        "AddV2", {Part(kBias, 0, pair, 0), Part(kBias, rows, pair, 0)});
    return nodes_.Joined({gates, Part(kBias, pair, s_.hidden, 0)}, 0);
  }

  Endpoint Activated(int64_t function, Endpoint x) {
    return nodes_.Activated(nodes_.Clipped(x, s_.clip), functions_[function]);
  }

  Endpoint Seen(size_t peephole, Endpoint gate) {
    if (peepholes_.empty()) return gate;
    return nodes_.Add("AddV2",
                      {gate, nodes_.Add("Mul", {c_, peepholes_[peephole]})});
  }

  // Gates come in the order input, output, forget, cell.
  void StepLstm(Endpoint x) {
    const std::vector<Endpoint> gates = nodes_.Split(
        nodes_.Add("AddV2", {x, nodes_.Product(h_, recurrent_)}), 4, 1);
    const Endpoint input = Activated(0, Seen(0, gates[0]));
    const Endpoint forget = s_.couples_gates
                                ? nodes_.Add("Sub", {nodes_.Number(1), input})
                                : Activated(0, Seen(2, gates[2]));
    const Endpoint update = Activated(1, gates[3]);
    c_ = nodes_.Add("AddV2", {nodes_.Add("Mul", {forget, c_}),
                              nodes_.Add("Mul", {input, update})});
    const Endpoint output = Activated(0, Seen(1, gates[1]));
    // The cell is not clipped.
    h_ = nodes_.Add("Mul", {output, nodes_.Activated(c_, functions_[2])});
  }

  // Gates come in the order update, reset, candidate.
  void StepGru(Endpoint x) {
    const std::vector<Endpoint> inputs = nodes_.Split(x, 3, 1);
    const std::vector<Endpoint> states =
        nodes_.Split(nodes_.Product(h_, recurrent_), 2, 1);
    const Endpoint update =
        Activated(0, nodes_.Add("AddV2", {inputs[0], states[0]}));
    const Endpoint reset =
        Activated(0, nodes_.Add("AddV2", {inputs[1], states[1]}));
    Endpoint inner;
    if (s_.resets_product) {
      inner = nodes_.Product(h_, candidate_);
      if (candidate_bias_.has_value()) {
        inner = nodes_.Add("BiasAdd", {inner, *candidate_bias_});
      }
      inner = nodes_.Add("Mul", {reset, inner});
    } else {
      inner = nodes_.Product(nodes_.Add("Mul", {reset, h_}), candidate_);
    }
    const Endpoint candidate =
        Activated(1, nodes_.Add("AddV2", {inputs[2], inner}));
    // (1 - update) candidate + update h.
    h_ = nodes_.Add(
        "AddV2",
        {candidate,
         nodes_.Add("Mul", {update, nodes_.Add("Sub", {h_, candidate})})});
  }

  // Sequences that have ended keep their state and give zeros.
  void Hold(int64_t step, Endpoint before, Endpoint cell_before) {
    const Endpoint is_within = nodes_.IsWithin(step, node_.inputs()[kLengths]);
    Endpoint& hidden = hidden_[static_cast<size_t>(step)];
    hidden = nodes_.Chosen(is_within, h_, nodes_.Add("ZerosLike", {h_}));
    h_ = nodes_.Chosen(is_within, h_, before);
    if (s_.kind == LayerKind::kLstm) {
      c_ = nodes_.Chosen(is_within, c_, cell_before);
    }
  }

  const Sequence& s_;
  const Node& node_;
  const int64_t number_;
  const graph::ShapeMap& shapes_;
  StepNodes& nodes_;
  const RecurrentActivation* const functions_;
  std::vector<Endpoint> from_input_, peepholes_, hidden_;
  Endpoint recurrent_, candidate_, h_, c_;
  std::optional<Endpoint> candidate_bias_;
};

absl::Status ReadAttributes(const Node& node, Sequence* s) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string direction,
      graph::GetStringOr(node.def(), "direction", "forward"));
  s->is_reverse = direction == "reverse";
  OPTFARM_ASSIGN_OR_RETURN(s->clip, graph::GetFloatOr(node.def(), "clip", 0));
  OPTFARM_ASSIGN_OR_RETURN(s->couples_gates,
                           graph::GetBoolOr(node.def(), "input_forget", false));
  OPTFARM_ASSIGN_OR_RETURN(
      s->resets_product,
      graph::GetBoolOr(node.def(), "linear_before_reset", false));
  OPTFARM_ASSIGN_OR_RETURN(
      s->functions, runtime::ReadRecurrentActivations(node.def(), s->directions,
                                                      UsualFunctions(s->kind)));
  return absl::OkStatus();
}

// nullopt: what has to be known is not.
absl::StatusOr<std::optional<Sequence>> ReadSequence(
    const Node& node, const graph::ShapeMap& shapes) {
  if (node.inputs().size() <= kHidden) {
    return absl::InvalidArgumentError("a recurrent layer lacks inputs");
  }
  const PartialShape& x = shapes.Of(node.inputs()[kX]);
  const PartialShape& w = shapes.Of(node.inputs()[kWeights]);
  const PartialShape& r = shapes.Of(node.inputs()[kRecurrent]);
  if (!x.has_rank() || x.rank() != 3 || !w.is_static() || w.rank() != 3 ||
      !r.is_static() || r.rank() != 3) {
    return std::optional<Sequence>();
  }
  Sequence s;
  s.kind = *LayerKindOf(node.op());
  s.steps = x.dim(0);
  s.batch = x.dim(1);
  s.depth = w.dim(2);
  s.hidden = r.dim(2);
  s.gates = GatesOf(s.kind);
  s.directions = w.dim(0);
  if (s.steps < 1 || s.steps > kMostSteps || s.batch < 1) {
    return std::optional<Sequence>();
  }
  if (s.directions < 1 || s.directions > 2 || r.dim(0) != s.directions ||
      s.hidden < 1 || s.depth < 1 || w.dim(1) != s.gates * s.hidden ||
      r.dim(1) != w.dim(1) || (x.dim(2) >= 0 && x.dim(2) != s.depth)) {
    return absl::InvalidArgumentError("its weights do not fit");
  }
  OPTFARM_RETURN_IF_ERROR(ReadAttributes(node, &s));
  return std::optional<Sequence>(std::move(s));
}

}  // namespace

std::optional<LayerKind> LayerKindOf(absl::string_view op) {
  if (op == "LstmSequence") return LayerKind::kLstm;
  if (op == "GruSequence") return LayerKind::kGru;
  if (op == "RnnSequence") return LayerKind::kRnn;
  return std::nullopt;
}

absl::StatusOr<std::optional<UnrolledLayer>> UnrollSequence(
    NodeId id, const graph::ShapeMap& shapes, graph::Graph* graph) {
  OPTFARM_ASSIGN_OR_RETURN(const std::optional<Sequence> s,
                           ReadSequence(graph->node(id), shapes));
  if (!s.has_value()) return std::optional<UnrolledLayer>();
  UnrolledLayer layer;
  OPTFARM_ASSIGN_OR_RETURN(
      layer.type,
      graph::GetTypeOr(graph->node(id).def(), "T", tensorflow::DT_FLOAT));
  // References to nodes survive growth, those to their inputs too.
  StepNodes nodes(graph, graph->node(id).name(), layer.type);
  std::vector<Endpoint> all, hidden, cells;
  for (int64_t d = 0; d < s->directions; ++d) {
    Direction direction(*s, graph->node(id), d, shapes, &nodes);
    direction.Run();
    all.push_back(nodes.Packed(direction.hidden(), 0));
    hidden.push_back(direction.last_hidden());
    cells.push_back(direction.last_cell());
  }
  layer.outputs = {nodes.Packed(all, 1), nodes.Packed(hidden, 0)};
  if (s->kind == LayerKind::kLstm) {
    layer.outputs.push_back(nodes.Packed(cells, 0));
  }
  return std::optional<UnrolledLayer>(std::move(layer));
}

}  // namespace optfarm::exporting
