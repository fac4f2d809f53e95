// make_quantization_explicit: what quantize_layers made, and TensorFlow's own
// chain, as float ops between QuantizeLinear and DequantizeLinear.

#include <algorithm>

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/verify.h"
#include "tests/engine/transforms/layer_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kExplicit[] = "make_quantization_explicit strip_unused_nodes";

int CountOf(const Graph& graph, const std::string& op) {
  const std::vector<std::string> ops = Ops(graph);
  return static_cast<int>(std::count(ops.begin(), ops.end(), op));
}

// in -> 3x3 convolution, bias, Relu, 1x1 convolution, "out".
GraphBuilder TwoLayers() {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 6, 2});
  b.Floats("w1", {3, 3, 2, 4}, UnlikeChannels(72, 4));
  b.Conv2D("product", "in", "w1");
  b.Floats("b1", {4}, {0.5f, 1, -0.7f, 0});
  b.Node("sum", "BiasAdd", {"product", "b1"}, FloatT());
  b.Node("first", "Relu", {"sum"}, FloatT());
  return b;
}

GraphBuilder WithLastLayer(GraphBuilder b, const std::string& from,
                           int64_t channels) {
  b.Floats("w2", {1, 1, channels, 3}, WaveValues(3 * channels));
  b.Conv2D("out", from, "w2");
  return b;
}

Graph Quantized(const GraphBuilder& b, bool frozen = true) {
  Graph graph = b.Build();
  MustApply(&graph, kLayers, "in", "out");
  if (frozen) {
    Freeze(&graph, Wave({1, 4, 6, 2}));
    MustApply(&graph, kFuse, "in", "out");
  }
  return graph;
}

float LargestOf(const std::vector<float>& values) {
  float largest = 0;
  for (float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// The explicit form gives the quantized graph's answer up to a step of one
// layer here and there.
void ExpectSameAnswer(const Graph& quantized, const Graph& graph,
                      float share = 0.01f) {
  const Tensor in = Wave({1, 4, 6, 2});
  const std::vector<float> wanted = Answer(quantized, in, "out");
  EXPECT_THAT(Answer(graph, in, "out"),
              AllNear(wanted, share * LargestOf(wanted)));
}

void ExpectNoRanges(const Graph& graph) {
  EXPECT_THAT(graph::Verify(graph), IsOk());
  for (graph::NodeId id : graph.Ids()) {
    const std::string& op = graph.node(id).op();
    EXPECT_LT(graph::RowOf(op).range_input, 0) << op;
    EXPECT_NE(op, "QuantizeV2");
  }
}

TEST(MakeQuantizationExplicitTest, GivesLayersScalesAndZeroPoints) {
  const Graph quantized = Quantized(WithLastLayer(TwoLayers(), "first", 4));
  Graph graph = quantized.Clone();
  MustApply(&graph, kExplicit, "in", "out");
  ExpectNoRanges(graph);
  ExpectSameAnswer(quantized, graph);
  EXPECT_EQ(CountOf(graph, "Conv2D"), 2);
  // The input and both layers.
  EXPECT_EQ(CountOf(graph, "QuantizeLinear"), 3);
  EXPECT_EQ(Show(graph, "first/eightbit/relu"), "Relu(first/eightbit/sum)");
}

TEST(MakeQuantizationExplicitTest, KeepsTheBitsOfWeights) {
  const Graph quantized = Quantized(WithLastLayer(TwoLayers(), "first", 4));
  Graph graph = quantized.Clone();
  MustApply(&graph, kExplicit, "in", "out");
  const graph::Node& before = quantized.node(
      quantized.node(quantized.Find("first/eightbit")).inputs()[1].node);
  const graph::NodeId after = graph.Find("first/eightbit/weights/quantized");
  ASSERT_NE(after, graph::kNoNode);
  const Tensor old = ConstValue(before).value();
  const Tensor now = ConstValue(graph.node(after)).value();
  EXPECT_EQ(now.dtype(), tensorflow::DT_INT8);
  const absl::Span<const int8_t> a = old.flat<int8_t>(), b = now.flat<int8_t>();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

TEST(MakeQuantizationExplicitTest, GivesBiasesTheScaleOfTheSums) {
  Graph graph = Quantized(WithLastLayer(TwoLayers(), "first", 4));
  MustApply(&graph, kExplicit, "in", "out");
  const std::vector<float> weights =
      FloatsOf(graph, "first/eightbit/weights/scale");
  const std::vector<float> bias = FloatsOf(graph, "first/eightbit/bias/scale");
  const graph::NodeId layer = graph.Find("first/eightbit/product");
  ASSERT_NE(layer, graph::kNoNode);
  const graph::NodeId input = graph.node(layer).inputs()[0].node;
  const std::vector<float> scale =
      FloatsOf(graph, graph.node(graph.node(input).inputs()[1].node).name());
  ASSERT_EQ(scale.size(), 1u);
  ASSERT_EQ(weights.size(), 4u);
  ASSERT_EQ(bias.size(), 4u);
  for (size_t c = 0; c < 4; ++c) EXPECT_EQ(bias[c], weights[c] * scale[0]);
}

TEST(MakeQuantizationExplicitTest, WritesUnsignedActivationsOnRequest) {
  const Graph quantized = Quantized(WithLastLayer(TwoLayers(), "first", 4));
  Graph graph = quantized.Clone();
  MustApply(&graph, "make_quantization_explicit(type=uint8)", "in", "out");
  ExpectSameAnswer(quantized, graph);
  for (graph::NodeId id : graph.Ids()) {
    if (graph.node(id).op() != "QuantizeLinear") continue;
    EXPECT_EQ(graph::GetType(graph.node(id).def(), "Q").value(),
              tensorflow::DT_UINT8);
  }
}

TEST(MakeQuantizationExplicitTest, RefusesOtherTypes) {
  Graph graph = Quantized(WithLastLayer(TwoLayers(), "first", 4));
  EXPECT_THAT(
      Apply(&graph, "make_quantization_explicit(type=int4)", "in", "out")
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("type is int4")));
}

TEST(MakeQuantizationExplicitTest, MovesQuantizedValuesAsTheyAre) {
  GraphBuilder b = TwoLayers();
  b.Ints("pads", {4, 2}, {0, 0, 1, 2, 0, 1, 0, 0});
  b.Node("padded", "Pad", {"first", "pads"}, FloatT());
  const Graph quantized = Quantized(WithLastLayer(b, "padded", 4));
  Graph graph = quantized.Clone();
  MustApply(&graph, kExplicit, "in", "out");
  ExpectNoRanges(graph);
  ExpectSameAnswer(quantized, graph);
  EXPECT_THAT(Ops(graph), Contains("PadV2"));
  EXPECT_THAT(Ops(graph), Not(Contains("Bitcast")));
  for (graph::NodeId id : graph.Ids()) {
    if (graph.node(id).op() != "PadV2") continue;
    EXPECT_EQ(graph::GetType(graph.node(id).def(), "T").value(),
              tensorflow::DT_INT8);
  }
}

TEST(MakeQuantizationExplicitTest, JoinsQuantizedValuesOfOneScale) {
  GraphBuilder b = TwoLayers();
  b.Floats("w3", {1, 1, 2, 4}, WaveValues(8));
  b.Conv2D("second", "in", "w3");
  b.Ints("axis", {}, {3});
  b.Node("joined", "ConcatV2", {"first", "second", "axis"},
         FloatT({{"N", IntAttr(2)}, {"Tidx", TypeAttr(tensorflow::DT_INT32)}}));
  const Graph quantized = Quantized(WithLastLayer(b, "joined", 8));
  Graph graph = quantized.Clone();
  MustApply(&graph, kExplicit, "in", "out");
  ExpectNoRanges(graph);
  ExpectSameAnswer(quantized, graph);
  for (graph::NodeId id : graph.Ids()) {
    if (graph.node(id).op() != "ConcatV2") continue;
    EXPECT_EQ(graph::GetType(graph.node(id).def(), "T").value(),
              tensorflow::DT_INT8);
  }
}

TEST(MakeQuantizationExplicitTest, PoolsBetweenEqualScales) {
  GraphBuilder b = TwoLayers();
  b.Node("pooled", "MaxPool", {"first"},
         FloatT({{"ksize", IntsAttr({1, 2, 2, 1})},
                 {"strides", IntsAttr({1, 2, 2, 1})},
                 {"padding", StringAttr("VALID")}}));
  const Graph quantized = Quantized(WithLastLayer(b, "pooled", 4));
  Graph graph = quantized.Clone();
  MustApply(&graph, kExplicit, "in", "out");
  ExpectNoRanges(graph);
  ExpectSameAnswer(quantized, graph);
  EXPECT_EQ(CountOf(graph, "QuantizeLinear"), 4);
}

TEST(MakeQuantizationExplicitTest, MakesMeansOfWholePicturesAgain) {
  GraphBuilder b = TwoLayers();
  b.Ints("axes", {2}, {1, 2});
  b.Node("mean", "Mean", {"first", "axes"},
         FloatT({{"keep_dims", BoolAttr(true)},
                 {"Tidx", TypeAttr(tensorflow::DT_INT32)}}));
  const Graph quantized = Quantized(WithLastLayer(b, "mean", 4));
  ASSERT_EQ(CountOf(quantized, "Mean"), 0);
  Graph graph = quantized.Clone();
  MustApply(&graph, kExplicit, "in", "out");
  ExpectNoRanges(graph);
  ExpectSameAnswer(quantized, graph);
  EXPECT_EQ(CountOf(graph, "Mean"), 1);
  EXPECT_EQ(CountOf(graph, "DepthwiseConv2dNative"), 0);
}

TEST(MakeQuantizationExplicitTest, AddsQuantizedTensors) {
  GraphBuilder b = TwoLayers();
  b.Floats("w3", {1, 1, 2, 4}, WaveValues(8));
  b.Conv2D("second", "in", "w3");
  b.Node("total", "Add", {"first", "second"}, FloatT());
  const Graph quantized = Quantized(WithLastLayer(b, "total", 4));
  ASSERT_EQ(CountOf(quantized, "QuantizedAdd"), 1);
  Graph graph = quantized.Clone();
  MustApply(&graph, kExplicit, "in", "out");
  ExpectNoRanges(graph);
  ExpectSameAnswer(quantized, graph, 0.03f);
}

TEST(MakeQuantizationExplicitTest, AsksForFrozenRanges) {
  const Graph quantized =
      Quantized(WithLastLayer(TwoLayers(), "first", 4), /*frozen=*/false);
  Graph graph = quantized.Clone();
  const absl::StatusOr<PipelineReport> report =
      Apply(&graph, "make_quantization_explicit", "in", "out");
  EXPECT_THAT(report.status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("freeze it with calibration data")));
}

TEST(MakeQuantizationExplicitTest, TakesWeightsThatAreStoredIn8Bits) {
  GraphBuilder b = WithLastLayer(TwoLayers(), "first", 4);
  Graph graph = b.Build();
  MustApply(&graph, "quantize_weights(minimum_size=1)", "in", "out");
  const Graph stored = graph.Clone();
  ASSERT_GT(CountOf(stored, "Dequantize"), 0);
  MustApply(&graph, kExplicit, "in", "out");
  EXPECT_THAT(graph::Verify(graph), IsOk());
  EXPECT_THAT(Ops(graph), Contains("DequantizeLinear"));
  ExpectSameAnswer(stored, graph, 1e-4f);
}

TEST(MakeQuantizationExplicitTest, LeavesFloatGraphsAlone) {
  Graph graph = WithLastLayer(TwoLayers(), "first", 4).Build();
  const std::string before = graph.ToDef().ShortDebugString();
  EXPECT_EQ(MustApply(&graph, "make_quantization_explicit", "in", "out")
                .nodes_changed,
            0);
  EXPECT_EQ(graph.ToDef().ShortDebugString(), before);
}

}  // namespace
}  // namespace optfarm::transforms::testing
