#include "engine/transforms/quantizing/idle_biases.h"

#include "tests/engine/transforms/layer_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A depthwise convolution without a bias; `window` x `window` pixels of it go
// into the next one, which has a bias.
GraphBuilder Pair(int64_t window) {
  GraphBuilder b;
  b.Placeholder("in", {1, 5, 5, 3});
  b.Floats("w1", {3, 3, 3, 1}, WaveValues(27));
  b.Conv2D("depth", "in", "w1").set_op("DepthwiseConv2dNative");
  b.Floats("w2", {window, window, 3, 2}, WaveValues(window * window * 6));
  b.Floats("b2", {2}, {1, 2});
  b.Conv2D("next", "depth", "w2");
  b.Node("out", "BiasAdd", {"next", "b2"}, FloatT());
  return b;
}

IdleBiases IdleOf(const GraphBuilder& builder, const std::string& outputs) {
  Graph graph = builder.Build();
  MustApply(&graph,
            std::string("quantize_layers dequantize_wide ") +
                "strip_unused_nodes sort_by_execution_order",
            "in", outputs);
  Freeze(&graph, Wave({1, 5, 5, 3}));
  MustApply(&graph, kFuse, "in", outputs);
  return FindIdleBiases(graph, graph::ParseTensorNames(outputs).value());
}

TEST(IdleBiasesTest, TheNextBiasTakesUpWhatSinglePixelsHandOn) {
  EXPECT_THAT(IdleOf(Pair(1), "out"), ElementsAre("eightbit/1/bias"));
}

TEST(IdleBiasesTest, PaddingDoesNotShiftWithAChannel) {
  EXPECT_THAT(IdleOf(Pair(3), "out"), IsEmpty());
}

TEST(IdleBiasesTest, WhatIsReadElsewhereMustBeRight) {
  EXPECT_THAT(IdleOf(Pair(1), "out,depth"), IsEmpty());
  GraphBuilder b = Pair(1);
  b.Node("relu", "Relu", {"depth"}, FloatT());
  EXPECT_THAT(IdleOf(b, "out,relu"), IsEmpty());
}

TEST(IdleBiasesTest, ABatchNormOfTheBatchTakesMeansOff) {
  for (const bool is_training : {true, false}) {
    GraphBuilder b = Pair(1);
    for (const char* name : {"scale", "offset"}) b.Floats(name, {2}, {3, 4});
    const std::vector<float> known =
        is_training ? std::vector<float>() : std::vector<float>{1, 2};
    for (const char* name : {"mean", "variance"}) {
      b.Floats(name, {static_cast<int64_t>(known.size())}, known);
    }
    b.Floats("w3", {1, 1, 3, 2}, WaveValues(6));
    b.Conv2D("beside", "in", "w3");
    b.Node("norm", "FusedBatchNorm",
           {"beside", "scale", "offset", "mean", "variance"},
           FloatT({{"is_training", BoolAttr(is_training)}}));
    const IdleBiases idle = IdleOf(b, "out,norm");
    EXPECT_EQ(idle.size(), is_training ? 2u : 1u) << is_training;
  }
}

TEST(IdleBiasesTest, ABiasWithNumbersIsKept) {
  GraphBuilder b = Pair(1);
  b.Floats("b1", {3}, {1, 2, 3});
  Graph graph = b.Build();
  const graph::NodeId next = graph.Find("next");
  tensorflow::NodeDef add;
  add.set_name("sum");
  add.set_op("BiasAdd");
  (*add.mutable_attr())["T"] = TypeAttr(tensorflow::DT_FLOAT);
  const graph::NodeId sum = graph.Add(
      std::move(add), {{graph.Find("depth"), 0}, {graph.Find("b1"), 0}});
  graph.SetInput(next, 0, {sum, 0});
  MustApply(&graph, kLayers, "in", "out");
  const graph::TensorName outputs[] = {{"out", 0}};
  EXPECT_THAT(FindIdleBiases(graph, outputs), IsEmpty());
}

}  // namespace
}  // namespace optfarm::transforms::testing
