// Layers in 8 bits: quantize_layers, fuse_requantization, and what takes them
// apart again.

#include "engine/transforms/quantizing/channel_quantization.h"
#include "engine/transforms/quantizing/expanded_layers.h"
#include "tests/engine/transforms/layer_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// in -> depthwise, bias, Relu6 -> 1x1 convolution, bias, Relu.
GraphBuilder Separable() {
  GraphBuilder b;
  b.Placeholder("in", {1, 5, 5, 3});
  b.Floats("w1", {3, 3, 3, 1}, UnlikeChannels(27, 3));
  b.Floats("b1", {3}, {0.5f, -0.25f, 2});
  b.Conv2D("depth", "in", "w1").set_op("DepthwiseConv2dNative");
  b.Node("add1", "BiasAdd", {"depth", "b1"}, FloatT());
  b.Node("relu1", "Relu6", {"add1"}, FloatT());
  b.Floats("w2", {1, 1, 3, 4}, UnlikeChannels(12, 4));
  b.Floats("b2", {4}, {1, 0, -1, 0.5f});
  b.Conv2D("point", "relu1", "w2");
  b.Node("add2", "Add", {"point", "b2"}, FloatT());
  b.Node("relu2", "Relu", {"add2"}, FloatT());
  return b;
}

TEST(QuantizeLayersTest, TakesBiasAndActivationIntoTheLayer) {
  Graph graph = Separable().Build();
  MustApply(&graph, kLayers, "in", "relu2");
  EXPECT_EQ(Show(graph, "relu1/eightbit"),
            "QuantizedDepthwiseConv2DWithBiasAndRelu(eightbit/1/in_requantize, "
            "eightbit/1/weights, eightbit/1/bias, eightbit/1/in_requantize:1, "
            "eightbit/1/in_requantize:2, eightbit/1/min, eightbit/1/max)");
  EXPECT_EQ(Show(graph, "relu2/eightbit"),
            "QuantizedConv2DWithBiasAndRelu(eightbit/1/requantize, "
            "eightbit/2/weights, eightbit/2/bias, eightbit/1/requantize:1, "
            "eightbit/1/requantize:2, eightbit/2/min, eightbit/2/max)");
  ExpectClose(Separable().Build(), graph, Wave({1, 5, 5, 3}), "relu2", 0.02f);
}

TEST(QuantizeLayersTest, LeavesOneOpForALayerOnceRangesAreFrozen) {
  const Graph original = Separable().Build();
  Graph graph = Separable().Build();
  const Tensor in = Wave({1, 5, 5, 3});
  MustApply(&graph, kLayers, "in", "relu2");
  Freeze(&graph, in);
  const std::vector<float> before = Answer(graph, in, "relu2");
  MustApply(&graph, kFuse, "in", "relu2");
  EXPECT_THAT(Ops(graph),
              Contains("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize"));
  EXPECT_THAT(Ops(graph),
              Contains("QuantizedConv2DWithBiasAndReluAndRequantize"));
  EXPECT_THAT(Ops(graph), Not(Contains("RequantizePerChannel")));
  EXPECT_THAT(Ops(graph), Not(Contains("Min")));
  EXPECT_THAT(Answer(graph, in, "relu2"), AllNear(before, 0.8f));
  ExpectClose(original, graph, in, "relu2", 0.02f);
}

TEST(QuantizeLayersTest, StillFindsRangesWhereNoneAreFrozen) {
  Graph graph = Separable().Build();
  MustApply(&graph, kLayers, "in", "relu2");
  MustApply(&graph, kFuse, "in", "relu2");
  EXPECT_THAT(Ops(graph), Contains("RequantizationRangePerChannel"));
  ExpectClose(Separable().Build(), graph, Wave({1, 5, 5, 3}), "relu2", 0.02f);
}

TEST(QuantizeLayersTest, LetsFloatOpsReadTheSumsThemselves) {
  Graph graph = Separable().Build();
  MustApply(&graph,
            "quantize_layers dequantize_wide strip_unused_nodes "
            "sort_by_execution_order",
            "in", "relu2");
  EXPECT_EQ(Show(graph, "relu2"),
            "Dequantize(relu2/eightbit, relu2/eightbit:1, relu2/eightbit:2)");
  // The first layer's quantized values go on, and its Relu6 is in their range.
  EXPECT_NE(graph.Find("eightbit/1/requantize"), graph::kNoNode);
  ExpectClose(Separable().Build(), graph, Wave({1, 5, 5, 3}), "relu2", 0.03f);
}

// Two layers, their sum with a Relu, a pool, both joined, and a layer behind.
GraphBuilder Residual() {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 4, 2});
  b.Floats("w1", {1, 1, 2, 3}, UnlikeChannels(6, 3));
  b.Conv2D("a", "in", "w1");
  b.Floats("w2", {3, 3, 2, 3}, WaveValues(54));
  b.Conv2D("b", "in", "w2");
  b.Node("sum", "AddV2", {"a", "b"}, FloatT());
  b.Node("relu", "Relu", {"sum"}, FloatT());
  b.Node("pool", "MaxPool", {"relu"},
         FloatT({{"ksize", IntsAttr({1, 1, 1, 1})},
                 {"strides", IntsAttr({1, 1, 1, 1})},
                 {"padding", StringAttr("SAME")}}));
  b.Ints("axis", {}, {3});
  b.Node("joined", "ConcatV2", {"pool", "a", "axis"},
         FloatT({{"N", IntAttr(2)}, {"Tidx", TypeAttr(tensorflow::DT_INT32)}}));
  b.Floats("w3", {1, 1, 6, 2}, WaveValues(12));
  b.Conv2D("out", "joined", "w3");
  return b;
}

TEST(QuantizeLayersTest, KeepsCodesThroughSumsPoolsAndJoins) {
  const Graph original = Residual().Build();
  Graph graph = Residual().Build();
  const Tensor in = Wave({1, 4, 4, 2});
  MustApply(&graph, kLayers, "in", "out");
  Freeze(&graph, in);
  MustApply(&graph, kFuse, "in", "out");
  int to_codes = 0, to_floats = 0;
  for (const std::string& op : Ops(graph)) {
    to_codes += op == "QuantizeV2" ? 1 : 0;
    to_floats += op == "Dequantize" ? 1 : 0;
  }
  EXPECT_EQ(to_codes, 1);
  EXPECT_EQ(to_floats, 1);
  EXPECT_THAT(Ops(graph), Contains("QuantizedMaxPool"));
  EXPECT_THAT(Ops(graph), Contains("QuantizedAdd"));
  EXPECT_THAT(Ops(graph), Contains("QuantizedRelu"));
  ExpectClose(original, graph, in, "out", 0.04f);
}

TEST(QuantizeLayersTest, GivesOneRangeToWhatIsJoined) {
  Graph graph = Residual().Build();
  const Tensor in = Wave({1, 4, 4, 2});
  MustApply(&graph, kLayers, "in", "out");
  Freeze(&graph, in);
  MustApply(&graph, kFuse, "in", "out");
  const graph::Node& joined = graph.node(graph.Find("joined/eightbit"));
  ASSERT_EQ(joined.op(), "QuantizedConcatV2");
  std::vector<float> ends;
  for (size_t i = 3; i < joined.inputs().size(); ++i) {
    ends.push_back(Answer(graph, in, graph.NameOf(joined.inputs()[i]))[0]);
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_EQ(ends[2], ends[3]);
}

TEST(QuantizeLayersTest, SparesExcludedNodesWithTheirWholeLayer) {
  for (const std::string name : {"depth", "add1", "relu1"}) {
    Graph graph = Separable().Build();
    const TransformReport report = MustApply(
        &graph, "quantize_layers(exclude_node=" + name + ")", "in", "relu2");
    EXPECT_EQ(Show(graph, "relu1"), "Relu6(add1)") << name;
    ASSERT_EQ(report.skipped.size(), 1u);
    EXPECT_EQ(report.skipped[0].node, "depth");
  }
}

TEST(QuantizeLayersTest, SaysWhyALayerStaysInFloat) {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 4, 2});
  b.Placeholder("w", {1, 1, 2, 3});
  b.Conv2D("c", "in", "w");
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "quantize_layers", "in", "c");
  ASSERT_EQ(report.skipped.size(), 1u);
  EXPECT_EQ(report.skipped[0].reason, "its weights are not constant");
}

TEST(QuantizeLayersTest, ComputesStridesThatDifferAndDilations) {
  GraphBuilder b;
  b.Placeholder("in", {1, 6, 6, 2});
  b.Floats("w1", {3, 3, 2, 3}, WaveValues(54));
  b.Conv2D("a", "in", "w1", 2, 1);
  b.Floats("w2", {3, 3, 3, 2}, WaveValues(54));
  auto& dilated = b.Conv2D("out", "a", "w2");
  (*dilated.mutable_attr())["dilations"] = IntsAttr({1, 2, 2, 1});
  const Graph original = b.Build();
  Graph graph = b.Build();
  const TransformReport report = MustApply(&graph, kLayers, "in", "out");
  EXPECT_THAT(report.skipped, IsEmpty());
  ExpectClose(original, graph, Wave({1, 6, 6, 2}), "out", 0.03f);
}

TEST(QuantizeLayersTest, SharesWeightsThatAreUsedTwice) {
  GraphBuilder b;
  b.Placeholder("in", {2, 3});
  b.Floats("w", {3, 3}, WaveValues(9));
  for (const auto& [name, input] :
       {std::pair("one", "in"), std::pair("two", "one")}) {
    b.Node(name, "MatMul", {input, "w"},
           FloatT({{"transpose_a", BoolAttr(false)},
                   {"transpose_b", BoolAttr(name == std::string("two"))}}));
  }
  b.Node("out", "MatMul", {"two", "w"},
         FloatT({{"transpose_a", BoolAttr(false)},
                 {"transpose_b", BoolAttr(false)}}));
  const Graph original = b.Build();
  Graph graph = b.Build();
  MustApply(&graph, kLayers, "in", "out");
  int weights = 0;
  for (const std::string& name : Names(graph)) {
    weights += name.ends_with("/weights") ? 1 : 0;
  }
  EXPECT_EQ(weights, 2);
  ExpectClose(original, graph, Wave({2, 3}), "out", 0.03f);
}

TEST(QuantizeLayersTest, TakesTrainedRanges) {
  GraphBuilder b = Separable();
  b.Floats("min", {}, {0});
  b.Floats("max", {}, {4});
  b.Node("trained", "FakeQuantWithMinMaxVars", {"relu2", "min", "max"}, {});
  b.Floats("w3", {1, 1, 4, 2}, WaveValues(8));
  b.Conv2D("out", "trained", "w3");
  const Graph original = b.Build();
  Graph graph = b.Build();
  MustApply(&graph, kLayers, "in", "out");
  EXPECT_EQ(Show(graph, "eightbit/2/requantize"),
            "RequantizePerChannel(trained/eightbit, trained/eightbit:1, "
            "trained/eightbit:2, min, max)");
  EXPECT_THAT(Ops(graph), Not(Contains("FakeQuantWithMinMaxVars")));
  ExpectClose(original, graph, Wave({1, 5, 5, 3}), "out", 0.15f);
}

TEST(ExpandLayersTest, AddsBiasesInFloatUnderTheirOldNames) {
  const Graph original = Separable().Build();
  Graph graph = Separable().Build();
  const Tensor in = Wave({1, 5, 5, 3});
  MustApply(&graph,
            "quantize_layers dequantize_wide strip_unused_nodes "
            "sort_by_execution_order",
            "in", "relu2");
  Freeze(&graph, in);
  MustApply(&graph, kFuse, "in", "relu2");
  const std::vector<float> fused = Answer(graph, in, "relu2");
  OPTFARM_ASSERT_OK(ExpandLayers(original, {}, {}, &graph));
  EXPECT_EQ(Show(graph, "add1"), "Add(relu1/eightbit/floats, eightbit/1/bias)");
  EXPECT_EQ(Show(graph, "add2"), "Add(relu2/eightbit/floats, eightbit/2/bias)");
  EXPECT_THAT(Answer(graph, in, "relu2/eightbit/relu"), AllNear(fused, 0.02f));
}

TEST(ChannelCodesTest, UseAllStepsOfEachChannel) {
  const ChannelQuantized coded =
      QuantizeByChannel({0.25f, 100, -1, 75}, 2, false, {});
  EXPECT_THAT(coded.values, ElementsAre(32, 127, -127, 95));
  EXPECT_THAT(coded.largest, ElementsAre(1, 100));
}

TEST(ChannelCodesTest, KeepStepsThatABiasCanBeCountedIn) {
  const float bias[] = {256, 0};
  const ChannelQuantized coded = QuantizeByChannel({0, 0}, 2, false, bias);
  EXPECT_THAT(coded.values, ElementsAre(0, 0));
  EXPECT_THAT(coded.largest, ElementsAre(1, 1));
}

}  // namespace
}  // namespace optfarm::transforms::testing
