
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr char kQuantize[] =
    "add_default_attributes quantize_nodes strip_unused_nodes "
    "sort_by_execution_order";

// in -> c (Conv2D with weights w) -> r (Relu).
GraphBuilder ConvolutionAndRelu(int64_t vertical_stride = 1,
                                int64_t horizontal_stride = 1) {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 4, 2});
  b.Floats("w", {3, 3, 2, 2}, WaveValues(36));
  b.Conv2D("c", "in", "w", vertical_stride, horizontal_stride);
  b.Node("r", "Relu", {"c"}, FloatT());
  return b;
}

// The largest of the original's answers times `share` is allowed as an error.
void ExpectCloseToFloat(const Graph& original, const Graph& quantized,
                        const runtime::Shape& shape, const std::string& output,
                        float share = 0.05f) {
  const Tensor in = Wave(shape);
  const std::vector<float> wanted = Run(original, "in", in, output);
  float largest = 0;
  for (float value : wanted) largest = std::max(largest, std::abs(value));
  EXPECT_THAT(Run(quantized, "in", in, output),
              AllNear(wanted, share * largest));
}

// Quantizes a graph with one op between `in` and `out` and compares.
Graph QuantizeAndCompare(const GraphBuilder& b, const runtime::Shape& shape) {
  const Graph original = b.Build();
  Graph graph = b.Build();
  MustApply(&graph, kQuantize, "in", "out");
  ExpectCloseToFloat(original, graph, shape, "out");
  return graph;
}

TEST(QuantizeNodesTest, GivesTheNamesOfTheWorkedExample) {
  const Graph original = ConvolutionAndRelu().Build();
  Graph graph = ConvolutionAndRelu().Build();
  MustApply(&graph,
            "add_default_attributes quantize_weights(minimum_size=1) "
            "quantize_nodes strip_unused_nodes",
            "in", "r");
  EXPECT_THAT(
      Names(graph),
      UnorderedElementsAre(
          "in", "c_eightbit/in/reshape_dims", "c_eightbit/in/reduction_dims",
          "c_eightbit/in/reshape", "c_eightbit/in/min", "c_eightbit/in/max",
          "c_eightbit/in/quantize", "w_quantized_const", "w_quantized_min",
          "w_quantized_max", "c/eightbit", "c/eightbit/requant_range",
          "c/eightbit/requantize", "r/eightbit", "r"));
  EXPECT_EQ(Show(graph, "c/eightbit"),
            "QuantizedConv2D(c_eightbit/in/quantize, w_quantized_const, "
            "c_eightbit/in/quantize:1, c_eightbit/in/quantize:2, "
            "w_quantized_min, w_quantized_max)");
  EXPECT_EQ(Show(graph, "r/eightbit"),
            "QuantizedRelu(c/eightbit/requantize, c/eightbit/requantize:1, "
            "c/eightbit/requantize:2)");
  EXPECT_EQ(Show(graph, "r"),
            "Dequantize(r/eightbit, r/eightbit:1, r/eightbit:2)");
  EXPECT_EQ(Show(graph, "c_eightbit/in/reduction_dims"), "Const()");
  ExpectCloseToFloat(original, graph, {1, 4, 4, 2}, "r");
}

TEST(QuantizeNodesTest, QuantizesElementwiseOps) {
  for (const std::string op : {"Add", "AddV2", "Mul", "BiasAdd"}) {
    GraphBuilder b;
    b.Placeholder("in", {2, 8});
    b.Floats("c", {8}, WaveValues(8));
    b.Node("out", op, {"in", "c"}, FloatT());
    const Graph graph = QuantizeAndCompare(b, {2, 8});
    EXPECT_THAT(Show(graph, "out/eightbit"),
                HasSubstr(op == "AddV2" ? "QuantizedAdd(" : "Quantized" + op));
  }
}

TEST(QuantizeNodesTest, QuantizesActivationsPoolsAndMatMul) {
  for (const std::string op : {"Relu", "Relu6"}) {
    GraphBuilder b;
    b.Placeholder("in", {2, 8});
    b.Node("out", op, {"in"}, FloatT());
    EXPECT_THAT(Show(QuantizeAndCompare(b, {2, 8}), "out/eightbit"),
                HasSubstr("Quantized" + op + "("));
  }
  for (const std::string op : {"MaxPool", "AvgPool"}) {
    GraphBuilder b;
    b.Placeholder("in", {1, 4, 4, 2});
    b.Node("out", op, {"in"},
           FloatT({{"ksize", IntsAttr({1, 2, 2, 1})},
                   {"strides", IntsAttr({1, 2, 2, 1})},
                   {"padding", StringAttr("VALID")}}));
    EXPECT_THAT(Show(QuantizeAndCompare(b, {1, 4, 4, 2}), "out/eightbit"),
                HasSubstr("Quantized" + op + "("));
  }
  GraphBuilder b;
  b.Placeholder("in", {2, 8});
  b.Floats("w", {4, 8}, WaveValues(32));
  b.Node("out", "MatMul", {"in", "w"},
         FloatT({{"transpose_b", BoolAttr(true)}}));
  const Graph graph = QuantizeAndCompare(b, {2, 8});
  EXPECT_TRUE(
      graph.node(graph.Find("out/eightbit")).FindAttr("transpose_b")->b());
}

TEST(QuantizeNodesTest, QuantizesWhatMovesValues) {
  GraphBuilder reshape;
  reshape.Placeholder("in", {2, 8});
  reshape.Ints("shape", {2}, {4, 4});
  reshape.Node("out", "Reshape", {"in", "shape"},
               FloatT({{"Tshape", TypeAttr(tensorflow::DT_INT32)}}));
  EXPECT_EQ(Show(QuantizeAndCompare(reshape, {2, 8}), "out/eightbit"),
            "QuantizedReshape(out_eightbit/in/quantize, shape, "
            "out_eightbit/in/quantize:1, out_eightbit/in/quantize:2)");
  GraphBuilder resize;
  resize.Placeholder("in", {1, 2, 2, 1});
  resize.Ints("size", {2}, {4, 4});
  resize.Node("out", "ResizeBilinear", {"in", "size"}, FloatT());
  EXPECT_THAT(Show(QuantizeAndCompare(resize, {1, 2, 2, 1}), "out/eightbit"),
              HasSubstr("QuantizedResizeBilinear("));
}

TEST(QuantizeNodesTest, PutsAllMinimaOfConcatBeforeAllMaxima) {
  GraphBuilder b;
  b.Placeholder("in", {2, 4});
  b.Ints("axis", {}, {1});
  b.Floats("c", {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  b.Node("out", "Concat", {"axis", "in", "c"}, FloatT({{"N", IntAttr(2)}}));
  EXPECT_EQ(Show(QuantizeAndCompare(b, {2, 4}), "out/eightbit"),
            "QuantizedConcat(axis, out_eightbit/in/quantize, "
            "out_eightbit/c/quantize, out_eightbit/in/quantize:1, "
            "out_eightbit/c/quantize:1, out_eightbit/in/quantize:2, "
            "out_eightbit/c/quantize:2)");
}

TEST(QuantizeNodesTest, QuantizesATensorThatIsReadTwiceOnce) {
  GraphBuilder b;
  b.Placeholder("in", {2, 4});
  b.Node("out", "Mul", {"in", "in"}, FloatT());
  const Graph graph = QuantizeAndCompare(b, {2, 4});
  EXPECT_EQ(Show(graph, "out/eightbit"),
            "QuantizedMul(out_eightbit/in/quantize, out_eightbit/in/quantize, "
            "out_eightbit/in/quantize:1, out_eightbit/in/quantize:2, "
            "out_eightbit/in/quantize:1, out_eightbit/in/quantize:2)");
}

TEST(QuantizeNodesTest, NamesOtherPorts) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  b.Ints("axis", {}, {0});
  b.Node("halves", "Split", {"axis", "in"},
         FloatT({{"num_split", IntAttr(2)}}));
  b.Node("out", "Relu", {"halves:1"}, FloatT());
  EXPECT_NE(QuantizeAndCompare(b, {4}).Find("out_eightbit/halves__port__1/min"),
            graph::kNoNode);
}

TEST(QuantizeNodesTest, UsesTheFallbackRange) {
  Graph graph = ConvolutionAndRelu().Build();
  MustApply(&graph,
            "add_default_attributes quantize_nodes(fallback_min=-8, "
            "fallback_max=8) strip_unused_nodes",
            "in", "r");
  EXPECT_EQ(Show(graph, "c/eightbit/requantize"),
            "Requantize(c/eightbit, c/eightbit:1, c/eightbit:2, "
            "c/eightbit/fallback_min, c/eightbit/fallback_max)");
  for (const char* parameters :
       {"input_min=0", "fallback_max=1", "input_min=1, input_max=0"}) {
    Graph other = ConvolutionAndRelu().Build();
    EXPECT_THAT(Apply(&other, std::string("quantize_nodes(") + parameters + ")",
                      "in", "r"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in")));
  }
}

TEST(QuantizeNodesTest, TakesCodesAsInputWhenTold) {
  Graph graph = ConvolutionAndRelu().Build();
  MustApply(&graph,
            "add_default_attributes quantize_nodes(input_min=-1, input_max=1) "
            "strip_unused_nodes",
            "in", "r");
  EXPECT_EQ(graph.node(graph.Find("in")).FindAttr("dtype")->type(),
            tensorflow::DT_QUINT8);
  EXPECT_THAT(Show(graph, "c/eightbit"),
              HasSubstr("QuantizedConv2D(in, c_eightbit/w/quantize, "
                        "in_eightbit/min, in_eightbit/max"));
}

TEST(QuantizeNodesTest, LeavesWhatItIsTold) {
  for (const char* parameter : {"ignore_op=Conv2D", "exclude_node=c"}) {
    Graph graph = ConvolutionAndRelu().Build();
    MustApply(
        &graph,
        std::string("add_default_attributes quantize_nodes(") + parameter + ")",
        "in", "r");
    EXPECT_EQ(Show(graph, "c"), "Conv2D(in, w)");
    EXPECT_NE(graph.Find("r/eightbit"), graph::kNoNode);
  }
}

TEST(QuantizeNodesTest, LeavesWhatHasNo8BitKernel) {
  const auto reason = [](const GraphBuilder& b, const std::string& output) {
    Graph graph = b.Build();
    const TransformReport report = MustApply(
        &graph, "add_default_attributes quantize_nodes", "in", output);
    return Skipped(report);
  };
  EXPECT_THAT(reason(ConvolutionAndRelu(1, 2), "r"),
              ElementsAre(HasSubstr("c: QuantizedConv2D needs equal strides")));
  GraphBuilder nchw = ConvolutionAndRelu();
  (*nchw.mutable_def()->mutable_node(2)->mutable_attr())["data_format"] =
      StringAttr("NCHW");
  (*nchw.mutable_def()->mutable_node(1)->mutable_attr())["value"]
      .mutable_tensor()
      ->mutable_tensor_shape()
      ->mutable_dim(2)
      ->set_size(4);
  (*nchw.mutable_def()->mutable_node(1)->mutable_attr())["value"]
      .mutable_tensor()
      ->mutable_tensor_shape()
      ->mutable_dim(3)
      ->set_size(1);
  EXPECT_THAT(reason(nchw, "r"), ElementsAre(HasSubstr("c: data_format NCHW")));
  GraphBuilder dilated = ConvolutionAndRelu();
  (*dilated.mutable_def()->mutable_node(2)->mutable_attr())["dilations"] =
      IntsAttr({1, 2, 2, 1});
  EXPECT_THAT(reason(dilated, "r"), ElementsAre(HasSubstr("dilated")));
  GraphBuilder broadcast;
  broadcast.Placeholder("in", {2, 3});
  broadcast.Floats("column", {2, 1}, {1, 2});
  broadcast.Node("out", "Mul", {"in", "column"}, FloatT());
  EXPECT_THAT(reason(broadcast, "out"),
              ElementsAre(HasSubstr("cannot combine shapes [2,3] and [2,1]")));
  GraphBuilder empty;
  empty.Placeholder("in", {0, 3});
  empty.Node("out", "Relu", {"in"}, FloatT());
  EXPECT_THAT(reason(empty, "out"), ElementsAre(HasSubstr("is empty")));
  GraphBuilder nan;
  nan.Placeholder("in", {2, 2});
  nan.Floats("c", {2}, {1, NAN});
  nan.Node("out", "Add", {"in", "c"}, FloatT());
  EXPECT_THAT(reason(nan, "out"), ElementsAre(HasSubstr("NaN")));
}

TEST(QuantizeNodesTest, KnowsThatLeadingOnesBroadcast) {
  GraphBuilder b;
  b.Placeholder("in", {2, 3, 4});
  b.Floats("c", {1, 1, 4}, WaveValues(4));
  b.Node("out", "Mul", {"in", "c"}, FloatT());
  EXPECT_NE(QuantizeAndCompare(b, {2, 3, 4}).Find("out/eightbit"),
            graph::kNoNode);
}

TEST(QuantizeNodesTest, LeavesIntegersAndLoops) {
  GraphBuilder b;
  b.Placeholder("in", {2}, tensorflow::DT_INT32);
  b.Node("sum", "Add", {"in", "in"}, {{"T", TypeAttr(tensorflow::DT_INT32)}});
  b.Placeholder("x", {2});
  b.Node("enter", "Enter", {"x"}, FloatT({{"frame_name", StringAttr("f")}}));
  b.Node("body", "Relu", {"enter"}, FloatT());
  b.Node("exit", "Exit", {"body"}, FloatT());
  b.Node("after", "Relu", {"exit"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report = MustApply(
      &graph, "add_default_attributes quantize_nodes", "in,x", "sum,after");
  EXPECT_EQ(Show(graph, "sum"), "Add(in, in)");
  EXPECT_EQ(Show(graph, "body"), "Relu(enter)");
  EXPECT_NE(graph.Find("after/eightbit"), graph::kNoNode);
  EXPECT_THAT(Skipped(report), ElementsAre(HasSubstr("body: it runs inside")));
}

TEST(QuantizeNodesTest, CarriesControlEdges) {
  GraphBuilder b;
  b.Placeholder("in", {2, 2});
  b.Placeholder("first", {});
  b.Node("out", "Relu", {"in", "^first"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "add_default_attributes quantize_nodes", "in,first", "out");
  EXPECT_THAT(Show(graph, "out/eightbit"), HasSubstr(", ^first)"));
}

TEST(QuantizeNodesTest, RequantizesToTrainedRanges) {
  GraphBuilder b;
  b.Placeholder("in", {2, 8});
  b.Floats("w", {8, 4}, WaveValues(32));
  b.Node("product", "MatMul", {"in", "w"}, FloatT());
  b.Node("relu", "Relu", {"product"}, FloatT());
  b.Floats("min", {}, {0});
  b.Floats("max", {}, {3});
  b.Node("fake", "FakeQuantWithMinMaxVars", {"relu", "min", "max"});
  b.Node("out", "Softmax", {"fake"}, FloatT());
  const Graph original = b.Build();
  Graph graph = b.Build();
  MustApply(&graph, kQuantize, "in", "out");
  EXPECT_EQ(Show(graph, "fake_hoisted_eightbit/requantize"),
            "Requantize(product/eightbit, product/eightbit:1, "
            "product/eightbit:2, min, max)");
  EXPECT_THAT(Show(graph, "fake/eightbit"), HasSubstr("QuantizedRelu("));
  EXPECT_THAT(Names(graph), Not(Contains("product/eightbit/requant_range")));
  ExpectCloseToFloat(original, graph, {2, 8}, "out");
}

TEST(QuantizeNodesTest, LeavesFakeQuantsOfOtherWidths) {
  GraphBuilder b;
  b.Placeholder("in", {2});
  b.Floats("min", {}, {0});
  b.Floats("max", {}, {3});
  b.Node("fake", "FakeQuantWithMinMaxVars", {"in", "min", "max"},
         {{"num_bits", IntAttr(4)}});
  b.Node("out", "Softmax", {"fake"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, kQuantize, "in", "out");
  EXPECT_THAT(Show(graph, "fake"), HasSubstr("FakeQuantWithMinMaxVars("));
}

}  // namespace
}  // namespace optfarm::transforms::testing
