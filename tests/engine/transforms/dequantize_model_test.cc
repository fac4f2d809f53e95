// dequantize_model: explicitly quantized graphs compute in float again.

#include <algorithm>

#include "tests/engine/transforms/layer_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::IsEmpty;

constexpr char kToFloat[] =
    "dequantize_model fold_constants strip_unused_nodes";

int CountOf(const Graph& graph, const std::string& op) {
  const std::vector<std::string> ops = Ops(graph);
  return static_cast<int>(std::count(ops.begin(), ops.end(), op));
}

// in -> 3x3 convolution, bias, Relu, 1x1 convolution, "out".
Graph TwoLayers() {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 6, 2});
  b.Floats("w1", {3, 3, 2, 4}, UnlikeChannels(72, 4));
  b.Conv2D("product", "in", "w1");
  b.Floats("b1", {4}, {0.5f, 1, -0.7f, 0});
  b.Node("sum", "BiasAdd", {"product", "b1"}, FloatT());
  b.Node("first", "Relu", {"sum"}, FloatT());
  b.Floats("w2", {1, 1, 4, 3}, WaveValues(12));
  b.Conv2D("out", "first", "w2");
  return b.Build();
}

// The same as ONNX and TensorFlow Lite have it.
Graph Quantized() {
  Graph graph = TwoLayers();
  MustApply(&graph, kLayers, "in", "out");
  Freeze(&graph, Wave({1, 4, 6, 2}));
  MustApply(&graph, kFuse, "in", "out");
  MustApply(&graph, "make_quantization_explicit strip_unused_nodes", "in",
            "out");
  return graph;
}

void ExpectAnswersOfTheOriginal(const Graph& graph) {
  const Tensor in = Wave({1, 4, 6, 2});
  const std::vector<float> wanted = Answer(TwoLayers(), in, "out");
  float largest = 0;
  for (const float value : wanted) largest = std::max(largest, std::abs(value));
  EXPECT_THAT(Answer(graph, in, "out"), AllNear(wanted, 0.03f * largest));
}

TEST(DequantizeModelTest, ComputesInFloat) {
  Graph graph = Quantized();
  EXPECT_EQ(CountOf(graph, "QuantizeLinear"), 3);
  const TransformReport report =
      MustApply(&graph, "dequantize_model", "in", "out");
  EXPECT_EQ(report.nodes_changed, 3);
  EXPECT_THAT(report.skipped, IsEmpty());
  MustApply(&graph, kToFloat, "in", "out");
  EXPECT_EQ(CountOf(graph, "QuantizeLinear"), 0);
  EXPECT_EQ(CountOf(graph, "DequantizeLinear"), 0);
  EXPECT_EQ(CountOf(graph, "Relu"), 1);
  ExpectAnswersOfTheOriginal(graph);
}

TEST(DequantizeModelTest, WritesTheReluThatQuantizingWas) {
  Graph graph = Quantized();
  MustApply(&graph, "remove_nodes(op=Relu)", "in", "out");
  ASSERT_EQ(CountOf(graph, "Relu"), 0);
  MustApply(&graph, kToFloat, "in", "out");
  EXPECT_EQ(CountOf(graph, "QuantizeLinear"), 0);
  EXPECT_EQ(CountOf(graph, "Relu"), 1);
  ExpectAnswersOfTheOriginal(graph);
}

TEST(DequantizeModelTest, LeavesAnotherScaleAlone) {
  GraphBuilder b;
  b.Placeholder("in", {1, 4});
  b.Floats("scale", {}, {0.5f});
  b.Floats("other", {}, {0.25f});
  *b.mutable_def()->add_node() =
      MakeConst("zero", Tensor::FromValues<int8_t>(runtime::Shape({}), {3}));
  b.Node("q", "QuantizeLinear", {"in", "scale", "zero"},
         {{"T", TypeAttr(tensorflow::DT_FLOAT)},
          {"Q", TypeAttr(tensorflow::DT_INT8)}});
  b.Node("out", "DequantizeLinear", {"q", "other", "zero"},
         {{"Q", TypeAttr(tensorflow::DT_INT8)}});
  b.Node("end", "Tanh", {"out"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "dequantize_model", "in", "end");
  EXPECT_EQ(report.nodes_changed, 0);
  ASSERT_EQ(report.skipped.size(), 1);
  EXPECT_THAT(report.skipped[0].reason, ::testing::HasSubstr("another scale"));
}

}  // namespace
}  // namespace optfarm::transforms::testing
