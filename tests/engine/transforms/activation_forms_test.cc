// make_quantization_explicit with activations of other forms: symmetric, and of
// 16 bits.

#include <algorithm>

#include "tests/engine/transforms/layer_testing.h"

namespace optfarm::transforms::testing {
namespace {

// in -> padded, 3x3 convolution, bias, Relu, 1x1 convolution, "out"; values on
// both sides of zero.
Graph TwoLayers() {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 6, 2});
  b.Ints("pads", {4, 2}, {0, 0, 1, 1, 1, 1, 0, 0});
  b.Node("padded", "Pad", {"in", "pads"},
         FloatT({{"Tpaddings", TypeAttr(tensorflow::DT_INT32)}}));
  b.Floats("w1", {3, 3, 2, 4}, UnlikeChannels(72, 4));
  b.Conv2D("product", "padded", "w1");
  b.Floats("b1", {4}, {0.5f, 1, -0.7f, 20});
  b.Node("sum", "BiasAdd", {"product", "b1"}, FloatT());
  b.Node("first", "Relu", {"sum"}, FloatT());
  b.Floats("w2", {1, 1, 4, 3}, WaveValues(12));
  b.Conv2D("out", "first", "w2");
  return b.Build();
}

class ActivationFormsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ActivationFormsTest, HaveZeroPointZeroAndTheSameAnswers) {
  Graph graph = TwoLayers();
  MustApply(&graph, kLayers, "in", "out");
  Freeze(&graph, Wave({1, 4, 6, 2}));
  MustApply(&graph, kFuse, "in", "out");
  const std::string type = GetParam();
  MustApply(&graph,
            "make_quantization_explicit(type=" + type + ") strip_unused_nodes",
            "in", "out");
  int quantized = 0;
  for (const graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (node.op() != "QuantizeLinear") continue;
    ++quantized;
    const auto zero = ConstValue(graph.node(node.inputs()[2].node));
    ASSERT_TRUE(zero.ok());
    EXPECT_EQ(zero->dtype(),
              type == "int16" ? tensorflow::DT_INT16 : tensorflow::DT_INT8);
    EXPECT_EQ(zero->AsInt64s()->front(), 0);
  }
  EXPECT_GE(quantized, 2);
  const Tensor in = Wave({1, 4, 6, 2});
  const std::vector<float> wanted = Answer(TwoLayers(), in, "out");
  float largest = 0;
  for (const float value : wanted) largest = std::max(largest, std::abs(value));
  // Weights have 8 bits in any case; a symmetric value has seven beside its
  // sign.
  const float share = type == "int16" ? 0.01f : 0.03f;
  EXPECT_THAT(Answer(graph, in, "out"), AllNear(wanted, share * largest));
}

INSTANTIATE_TEST_SUITE_P(Forms, ActivationFormsTest,
                         ::testing::Values("symmetric", "int16"));

}  // namespace
}  // namespace optfarm::transforms::testing
