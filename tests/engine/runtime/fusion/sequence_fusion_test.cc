// LSTMs and GRUs with packed weights against the reference kernels, with each
// instruction set that this machine has.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/fusion/fusions.h"
#include "tests/engine/runtime/fusion/fast_kernels.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

constexpr DataType kFloat = tensorflow::DT_FLOAT;
constexpr Tolerance kClose = {.absolute = 2e-6f, .relative = 1e-5f};

struct Layer {
  bool is_lstm = true;
  std::string direction = "forward";
  int64_t inputs = 1;
  int64_t hidden = 1;
  bool has_bias = true;
  bool has_initial_state = true;
  // Empty: all steps.
  std::vector<int32_t> lengths;
  bool has_peepholes = false;
  float clip = 0;
  bool resets_product = true;
  std::vector<std::string> activations;

  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  int64_t row() const { return (is_lstm ? 4 : 3) * hidden; }
};

class SequenceFusionTest : public FastKernelsTest {
 protected:
  Tensor RandomOrNone(bool there, const Shape& shape) {
    return there ? Random(shape) : Random({0});
  }

  GraphMaker GraphOf(const Layer& layer, int64_t batch) {
    const int64_t dirs = layer.directions();
    GraphMaker g;
    g.Placeholder("x", kFloat);
    g.Const("w", Random({dirs, layer.row(), layer.inputs}));
    g.Const("r", Random({dirs, layer.row(), layer.hidden}));
    g.Const("b", RandomOrNone(layer.has_bias, {dirs, 2 * layer.row()}));
    g.Const("lengths",
            Tensor::FromValues<int32_t>(
                {static_cast<int64_t>(layer.lengths.size())}, layer.lengths));
    const Shape state({dirs, batch, layer.hidden});
    g.Const("h", RandomOrNone(layer.has_initial_state, state));
    std::vector<std::string> inputs = {"x", "w", "r", "b", "lengths", "h"};
    if (layer.is_lstm) {
      g.Const("c", RandomOrNone(layer.has_initial_state, state));
      g.Const("p", RandomOrNone(layer.has_peepholes, {dirs, 3 * layer.hidden}));
      inputs.insert(inputs.end(), {"c", "p"});
    }
    auto node =
        g.Node("y", layer.is_lstm ? "LstmSequence" : "GruSequence", inputs);
    node.Type("T", kFloat)
        .Int("hidden_size", layer.hidden)
        .Text("direction", layer.direction);
    if (!layer.is_lstm) node.Bool("linear_before_reset", layer.resets_product);
    tensorflow::NodeDef* const def =
        g.def()->mutable_node(g.def()->node_size() - 1);
    (*def->mutable_attr())["clip"].set_f(layer.clip);
    for (const std::string& name : layer.activations) {
      (*def->mutable_attr())["activations"].mutable_list()->add_s(name);
    }
    return g;
  }

  void ExpectSameAsReference(const Layer& layer, int64_t steps, int64_t batch) {
    SCOPED_TRACE(absl::StrCat(layer.is_lstm ? "lstm " : "gru ", layer.direction,
                              ": ", steps, " steps, batch ", batch, ", ",
                              layer.inputs, " inputs, ", layer.hidden,
                              " hidden"));
    const GraphMaker g = GraphOf(layer, batch);
    const Tensor x = Random({steps, batch, layer.inputs});
    const std::string fetches = layer.is_lstm ? "y,y:1,y:2" : "y,y:1";
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(g, "x", {x}, fetches, false));
    for (int threads : {1, 3}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Result got, RunGraph(g, "x", {x}, fetches, true, threads));
      ASSERT_EQ(got.values.size(), wanted.values.size());
      for (size_t i = 0; i < wanted.values.size(); ++i) {
        ExpectClose(got.values[i], wanted.values[i], kClose);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Sets, SequenceFusionTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

TEST_P(SequenceFusionTest, LayersOfManySizesAgree) {
  for (int round = 0; round < 80; ++round) {
    Layer layer;
    layer.is_lstm = Chance();
    layer.direction = std::vector<std::string>{"forward", "reverse",
                                               "bidirectional"}[Pick(0, 2)];
    layer.inputs = Pick(1, 40);
    layer.hidden = Pick(0, 2) == 0 ? 16 * Pick(1, 3) : Pick(1, 40);
    layer.has_bias = Chance();
    layer.has_initial_state = Chance();
    const int64_t batch = Pick(0, 2) == 0 ? Pick(2, 9) : 1;
    const int64_t steps = Pick(1, 7);
    if (Chance()) {
      layer.lengths.assign(batch, static_cast<int32_t>(steps));
    }
    ExpectSameAsReference(layer, steps, batch);
  }
}

TEST_P(SequenceFusionTest, ALayerIsTakenAndSaysSo) {
  for (const bool is_lstm : {true, false}) {
    Layer layer;
    layer.is_lstm = is_lstm;
    layer.direction = "bidirectional";
    layer.inputs = layer.hidden = 16;
    const GraphMaker g = GraphOf(layer, 1);
    SessionOptions options;
    std::vector<FusedNodes> taken;
    options.fused_nodes = &taken;
    OPTFARM_ASSERT_OK(g.Session("x", "y", options).status());
    ASSERT_EQ(taken.size(), 1);
    EXPECT_EQ(taken[0].fusion, "sequences");
  }
}

TEST_P(SequenceFusionTest, WhatItDoesNotServeIsTheReferenceKernels) {
  Layer plain;
  plain.inputs = 5;
  plain.hidden = 6;
  Layer layer = plain;
  layer.lengths = {4, 2, 0};
  ExpectSameAsReference(layer, 4, 3);
  layer = plain;
  layer.has_peepholes = true;
  ExpectSameAsReference(layer, 4, 3);
  layer = plain;
  layer.clip = 0.5f;
  ExpectSameAsReference(layer, 4, 3);
  layer = plain;
  layer.activations = {"hardsigmoid", "tanh", "relu"};
  ExpectSameAsReference(layer, 4, 3);
  layer = plain;
  layer.is_lstm = layer.resets_product = false;
  ExpectSameAsReference(layer, 4, 3);
  layer = plain;
  ExpectSameAsReference(layer, 0, 3);
}

TEST_P(SequenceFusionTest, InputsThatDoNotFitAreRefusedAsByTheReference) {
  Layer layer;
  layer.inputs = 5;
  layer.hidden = 6;
  const GraphMaker g = GraphOf(layer, 2);
  for (const bool is_fast : {false, true}) {
    EXPECT_THAT(RunGraph(g, "x", {Random({3, 2, 4})}, "y", is_fast),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("w")));
    // The initial state is that of two sequences.
    EXPECT_THAT(
        RunGraph(g, "x", {Random({3, 4, 5})}, "y", is_fast),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("initial_h")));
  }
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
