// The steps of an LSTM, whose inputs are multiplied all at once, against the
// reference kernels, with each instruction set that this machine has.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/runtime/fusion/fast_kernels.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

constexpr DataType kFloat = tensorflow::DT_FLOAT;
constexpr char kStep[] = "ConcatV2+MatMul+BiasAdd";

struct Layer {
  int64_t steps = 5;
  int64_t axis = 1;
  int64_t depth = 28;
  int64_t columns = 128;
  // A state is as wide as one of the parts of a product.
  int64_t parts = 4;
  // Step 2 has weights of its own.
  bool is_mixed = false;
};

class RecurrentProductsTest : public FastKernelsTest {
 protected:
  // Inputs "x", the first state "h"; the last state is "h<steps>".
  GraphMaker Net(const Layer& layer) {
    const int64_t state = layer.columns / layer.parts;
    GraphMaker g;
    g.Placeholder("x", kFloat).Placeholder("h0", kFloat);
    g.Const("axis", Tensor::Scalar<int32_t>(1));
    const Shape shape = {layer.depth + state, layer.columns};
    // Small, so that a rounding is not made larger from step to step.
    g.Const("weights", Random(shape, -0.2f, 0.2f));
    g.Const("others", Random(shape, -0.2f, 0.2f));
    g.Const("bias", Random({layer.columns}));
    g.Node("inputs", "Unpack", {"x"})
        .Type("T", kFloat)
        .Int("num", layer.steps)
        .Int("axis", layer.axis);
    for (int64_t i = 0; i < layer.steps; ++i) {
      const auto named = [&](const char* name) {
        return absl::StrCat(name, i);
      };
      const bool is_other = layer.is_mixed && i == 2;
      g.Node(named("both"), "ConcatV2",
             {absl::StrCat("inputs:", i), named("h"), "axis"})
          .Type("T", kFloat)
          .Int("N", 2);
      g.Math(named("product"), "MatMul",
             {named("both"), is_other ? "others" : "weights"});
      g.Math(named("sum"), "BiasAdd", {named("product"), "bias"});
      g.Node(named("gates"), "Split", {"axis", named("sum")})
          .Type("T", kFloat)
          .Int("num_split", layer.parts);
      g.Math(named("in"), "Sigmoid", {named("gates")});
      g.Math(named("new"), "Tanh", {named("gates") + ":1"});
      g.Math(absl::StrCat("h", i + 1), "Mul", {named("in"), named("new")});
    }
    return g;
  }

  std::vector<Tensor> Inputs(const Layer& layer, int64_t batch) {
    const Shape inputs = layer.axis == 0
                             ? Shape({layer.steps, batch, layer.depth})
                             : Shape({batch, layer.steps, layer.depth});
    return {Random(inputs), Random({batch, layer.columns / layer.parts})};
  }
};

INSTANTIATE_TEST_SUITE_P(Sets, RecurrentProductsTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

std::string LastState(const Layer& layer) {
  return absl::StrCat("h", layer.steps);
}

// `fused`: how many steps become one with their product.
void ExpectSameAsReference(const GraphMaker& g,
                           const std::vector<Tensor>& inputs,
                           const std::string& fetches, int fused) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                               RunGraph(g, "x,h0", inputs, fetches, false));
  for (int threads : {1, 3}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Result got, RunGraph(g, "x,h0", inputs, fetches, true, threads));
    EXPECT_EQ(std::count(got.ops.begin(), got.ops.end(), kStep), fused);
    ASSERT_EQ(got.values.size(), wanted.values.size());
    for (size_t i = 0; i < wanted.values.size(); ++i) {
      ExpectClose(got.values[i], wanted.values[i], {.absolute = 2e-6f});
    }
  }
}

TEST_P(RecurrentProductsTest, StepsAgree) {
  for (int64_t axis : {0, 1}) {
    for (int64_t columns : {128, 384}) {
      for (int64_t batch : {1, 3, 17}) {
        const Layer layer = {.steps = Pick(4, 7),
                             .axis = axis,
                             .depth = Pick(1, 40),
                             .columns = columns};
        SCOPED_TRACE(absl::StrCat(layer.steps, " steps along ", axis, ", ",
                                  columns, " columns, batch ", batch));
        ExpectSameAsReference(Net(layer), Inputs(layer, batch),
                              LastState(layer), static_cast<int>(layer.steps));
      }
    }
  }
}

TEST_P(RecurrentProductsTest, InputsThatOthersReadAreKept) {
  const Layer layer = {.steps = 7};
  GraphMaker g = Net(layer);
  g.Math("first", "Neg", {"inputs"}).Math("third", "Neg", {"inputs:3"});
  for (int64_t batch : {1, 2}) {
    ExpectSameAsReference(g, Inputs(layer, batch),
                          LastState(layer) + ",first,third,inputs:1", 4);
  }
}

TEST_P(RecurrentProductsTest, AStepWithOtherWeightsIsOneByItself) {
  const Layer layer = {.is_mixed = true};
  ExpectSameAsReference(Net(layer), Inputs(layer, 2), LastState(layer), 4);
}

TEST_P(RecurrentProductsTest, StatesOfOtherDepthAgree) {
  // Which rows of the weights are theirs is seen in the run.
  for (int64_t axis : {0, 1}) {
    const Layer layer = {.axis = axis, .depth = 40, .parts = 2};
    ExpectSameAsReference(Net(layer), Inputs(layer, 3), LastState(layer), 5);
  }
}

TEST_P(RecurrentProductsTest, WhatIsNoLayerStays) {
  for (const Layer& layer : {Layer{.steps = 3}, Layer{.columns = 100}}) {
    ExpectSameAsReference(Net(layer), Inputs(layer, 1), LastState(layer), 0);
  }
}

TEST_P(RecurrentProductsTest, WrongShapesAreRefused) {
  const Layer layer;
  const GraphMaker g = Net(layer);
  const Tensor inputs = Random({2, 5, 28}), state = Random({2, 32});
  for (const std::vector<Tensor>& wrong :
       std::vector<std::vector<Tensor>>{{inputs, Random({2, 31})},
                                        {inputs, Random({1, 32})},
                                        {inputs, Random({32})},
                                        {Random({2, 4, 28}), state},
                                        {Random({2, 5, 27}), state},
                                        {Random({2, 5}), state},
                                        {Random({2, 5, 28, 1}), state},
                                        {Random({5}), state}}) {
    SCOPED_TRACE(absl::StrCat(wrong[0].DebugString(0), " and ",
                              wrong[1].DebugString(0)));
    for (bool is_fast : {false, true}) {
      EXPECT_EQ(RunGraph(g, "x,h0", wrong, "h5", is_fast).status().code(),
                absl::StatusCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime
#endif
