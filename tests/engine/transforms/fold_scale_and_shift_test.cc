// The graph must compute what it computed before, whichever way a batch norm
// was written; what cannot be folded is left and named.

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFold[] = "fold_scale_and_shift";

TransformReport FoldAndCompare(const GraphBuilder& b, Graph* graph,
                               const runtime::Shape& shape = {2, 4, 4, 2}) {
  *graph = b.Build();
  const Tensor in = Wave(shape);
  const std::vector<float> before = Run(*graph, "in", in, "out");
  const TransformReport report = MustApply(graph, kFold, "in", "out");
  EXPECT_THAT(Run(*graph, "in", in, "out"), AllNear(before, 1e-4f));
  return report;
}

// A convolution of two channels to three, 1 x 1.
void Conv(GraphBuilder* b, const std::string& name) {
  b->Floats(name + "/w", {1, 1, 2, 3}, {1, -2, 3, 4, 5, -6});
  b->Conv2D(name, "in", name + "/w");
}

GraphBuilder WithConv() {
  GraphBuilder b;
  b.Placeholder("in", {2, 4, 4, 2});
  Conv(&b, "conv");
  return b;
}

TEST(FoldScaleAndShiftTest, FoldsSlimsMulAndAdd) {
  GraphBuilder b = WithConv();
  b.Floats("scale", {3}, {2, 3, -4});
  b.Floats("shift", {3}, {0.5, 0, 1});
  b.Node("mul", "Mul", {"conv", "scale"}, FloatT());
  b.Node("add", "Add", {"mul", "shift"}, FloatT());
  b.Node("out", "Relu", {"add"}, FloatT());
  Graph graph;
  EXPECT_EQ(FoldAndCompare(b, &graph).nodes_changed, 1);
  EXPECT_THAT(SortedNames(graph), ElementsAre("add", "conv", "conv/w",
                                              "conv_bn_offset", "in", "out"));
  EXPECT_EQ(Show(graph, "add"), "BiasAdd(conv, conv_bn_offset)");
  EXPECT_THAT(FloatsOf(graph, "conv/w"), ElementsAre(2, -6, -12, 8, 15, 24));
  EXPECT_THAT(FloatsOf(graph, "conv_bn_offset"), ElementsAre(0.5, 0, 1));
}

TEST(FoldScaleAndShiftTest, FoldsEveryWayToWriteIt) {
  // Keras: (x - mean) / deviation * gamma + beta, the constants on either side
  // and in shapes that broadcast, after a bias.
  GraphBuilder b = WithConv();
  b.Floats("bias", {3}, {1, 2, 3});
  b.Node("biased", "BiasAdd", {"conv", "bias"}, FloatT());
  b.Floats("mean", {1, 1, 1, 3}, {0.1f, 0.2f, 0.3f});
  b.Node("centred", "Sub", {"biased", "mean"}, FloatT());
  b.Floats("deviation", {3}, {2, 4, 5});
  b.Node("normed", "RealDiv", {"centred", "deviation"}, FloatT());
  b.Floats("gamma", {1, 3}, {1.5f, 0.5f, 2});
  b.Node("scaled", "Mul", {"gamma", "normed"}, FloatT());
  b.Floats("two", {}, {2});
  b.Node("doubled", "Mul", {"scaled", "two"}, FloatT());
  b.Floats("beta", {3}, {3, 2, 1});
  b.Node("added", "AddV2", {"beta", "doubled"}, FloatT());
  b.Floats("one", {1}, {1});
  b.Node("turned", "Sub", {"one", "added"}, FloatT());
  b.Node("out", "Relu6", {"turned"}, FloatT());
  Graph graph;
  FoldAndCompare(b, &graph);
  EXPECT_THAT(
      SortedNames(graph),
      ElementsAre("conv", "conv/w", "conv_bn_offset", "in", "out", "turned"));
}

TEST(FoldScaleAndShiftTest, FoldsABatchNormOpBehindABias) {
  GraphBuilder b = WithConv();
  b.Floats("bias", {3}, {1, 2, 3});
  b.Node("biased", "BiasAdd", {"conv", "bias"}, FloatT());
  b.Floats("gamma", {3}, {1.5f, 0.5f, 2});
  b.Floats("beta", {3}, {3, 2, 1});
  b.Floats("mean", {3}, {0.1f, 0.2f, 0.3f});
  b.Floats("variance", {3}, {2, 4, 5});
  b.Node("norm", "FusedBatchNorm",
         {"biased", "gamma", "beta", "mean", "variance"},
         FloatT({{"epsilon", FloatAttr(0.001f)},
                 {"is_training", BoolAttr(false)}}));
  b.Node("out", "Relu", {"norm"}, FloatT());
  Graph graph;
  FoldAndCompare(b, &graph);
  EXPECT_EQ(Show(graph, "norm"), "BiasAdd(conv, conv_bn_offset)");
}

TEST(FoldScaleAndShiftTest, FoldsDepthwiseConvolutionsAndMatrixProducts) {
  GraphBuilder depthwise;
  depthwise.Placeholder("in", {2, 4, 4, 2});
  depthwise.Floats("w", {1, 1, 2, 2}, {1, -2, 3, 4});
  depthwise.Node("conv", "DepthwiseConv2dNative", {"in", "w"},
                 FloatT({{"strides", IntsAttr({1, 1, 1, 1})},
                         {"padding", StringAttr("SAME")}}));
  depthwise.Floats("scale", {4}, {2, 3, 4, 5});
  depthwise.Node("mul", "Mul", {"scale", "conv"}, FloatT());
  depthwise.Node("out", "Relu", {"mul"}, FloatT());
  Graph graph;
  FoldAndCompare(depthwise, &graph);
  EXPECT_EQ(Show(graph, "mul"), "DepthwiseConv2dNative(in, w)");
  EXPECT_THAT(FloatsOf(graph, "w"), ElementsAre(2, -6, 12, 20));

  GraphBuilder product;
  product.Placeholder("in", {2, 2});
  product.Floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  product.Node("product", "MatMul", {"in", "w"},
               FloatT({{"transpose_b", BoolAttr(true)}}));
  product.Floats("scale", {3}, {2, 3, 4});
  product.Node("mul", "Mul", {"product", "scale"}, FloatT());
  product.Floats("shift", {3}, {1, 1, 1});
  product.Node("add", "Add", {"mul", "shift"}, FloatT());
  product.Node("out", "Relu", {"add"}, FloatT());
  FoldAndCompare(product, &graph, {2, 2});
  EXPECT_THAT(FloatsOf(graph, "w"), ElementsAre(2, 4, 9, 12, 20, 24));
}

TEST(FoldScaleAndShiftTest, GoesThroughBatchToSpace) {
  GraphBuilder b;
  b.Placeholder("in", {4, 2, 2, 2});
  Conv(&b, "conv");
  b.Ints("block", {2}, {2, 2});
  b.Ints("crops", {2, 2}, {0, 0, 0, 0});
  b.Node("space", "BatchToSpaceND", {"conv", "block", "crops"}, FloatT());
  b.Floats("scale", {3}, {2, 3, 4});
  b.Node("mul", "Mul", {"space", "scale"}, FloatT());
  b.Floats("shift", {3}, {1, 2, 3});
  b.Node("add", "Add", {"mul", "shift"}, FloatT());
  b.Node("out", "Relu", {"add"}, FloatT());
  Graph graph;
  FoldAndCompare(b, &graph, {4, 2, 2, 2});
  EXPECT_EQ(Show(graph, "add"), "BatchToSpaceND(conv/biasadd, block, crops)");
}

// Keras with channels first, on a processor that cannot: the convolution stands
// between two Transposes.
TEST(FoldScaleAndShiftTest, FollowsTheChannelsThroughATranspose) {
  GraphBuilder b = WithConv();
  b.Ints("order", {4}, {0, 3, 1, 2});
  b.Node("turned", "Transpose", {"conv", "order"}, FloatT());
  b.Floats("scale", {1, 3, 1, 1}, {2, 3, 4});
  b.Node("mul", "Mul", {"turned", "scale"}, FloatT());
  b.Floats("shift", {1, 3, 1, 1}, {1, 2, 3});
  b.Node("add", "Add", {"mul", "shift"}, FloatT());
  b.Node("out", "Relu", {"add"}, FloatT());
  Graph graph;
  FoldAndCompare(b, &graph);
  EXPECT_EQ(Show(graph, "add"), "Transpose(conv/biasadd, order)");
  GraphBuilder along = WithConv();
  along.Ints("order", {4}, {0, 3, 1, 2});
  along.Node("turned", "Transpose", {"conv", "order"}, FloatT());
  along.Floats("scale", {4}, {1, 2, 3, 4});
  along.Node("out", "Mul", {"turned", "scale"}, FloatT());
  EXPECT_THAT(Skipped(FoldAndCompare(along, &graph)),
              ElementsAre(HasSubstr("do not go along the channels")));
}

TEST(FoldScaleAndShiftTest, SharesTheConstantsOutOverAConcatenation) {
  GraphBuilder b;
  b.Placeholder("in", {2, 4, 4, 2});
  Conv(&b, "a");
  Conv(&b, "b");
  Conv(&b, "c");
  b.Floats("own", {3}, {2, 2, 3});
  b.Node("b/scaled", "Mul", {"b", "own"}, FloatT());
  b.Ints("axis", {}, {-1});
  const Attrs two = FloatT({{"N", IntAttr(2)}});
  b.Node("inner", "ConcatV2", {"b/scaled", "c", "axis"}, two);
  b.Node("joined", "ConcatV2", {"a", "inner", "axis"}, two);
  b.Floats("scale", {9}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  b.Node("mul", "Mul", {"joined", "scale"}, FloatT());
  b.Floats("shift", {9}, {9, 8, 7, 6, 5, 4, 3, 2, 1});
  b.Node("add", "Add", {"mul", "shift"}, FloatT());
  b.Node("out", "Relu", {"add"}, FloatT());
  Graph graph;
  EXPECT_EQ(FoldAndCompare(b, &graph).nodes_changed, 1);
  EXPECT_EQ(Show(graph, "add"), "ConcatV2(a/biasadd, inner, axis)");
  EXPECT_EQ(Show(graph, "inner"), "ConcatV2(b/biasadd, c/biasadd, axis)");
  EXPECT_THAT(FloatsOf(graph, "b/w"), ElementsAre(8, -20, 54, 32, 50, -108));
}

TEST(FoldScaleAndShiftTest, GivesPartsOfABatchTheSameConstants) {
  GraphBuilder b;
  b.Placeholder("in", {2, 4, 4, 2});
  Conv(&b, "a");
  Conv(&b, "b");
  b.Ints("axis", {}, {1});
  b.Node("joined", "Concat", {"axis", "a", "b"}, FloatT({{"N", IntAttr(2)}}));
  b.Floats("scale", {3}, {1, 2, 3});
  b.Node("mul", "Mul", {"joined", "scale"}, FloatT());
  b.Node("out", "Relu", {"mul"}, FloatT());
  Graph graph;
  FoldAndCompare(b, &graph);
  EXPECT_EQ(Show(graph, "mul"), "Concat(axis, a, b)");
}

TEST(FoldScaleAndShiftTest, TakesTheChannelsWhereTheFormatHasThem) {
  GraphBuilder b;
  b.Placeholder("in", {1, 2, 4, 4});
  b.Floats("w", {1, 1, 2, 3}, {1, -2, 3, 4, 5, -6});
  tensorflow::NodeDef& conv = b.Conv2D("conv", "in", "w");
  (*conv.mutable_attr())["data_format"] = StringAttr("NCHW");
  b.Floats("scale", {1, 3, 1, 1}, {2, 3, 4});
  b.Node("mul", "Mul", {"conv", "scale"}, FloatT());
  b.Floats("along_width", {3}, {2, 3, 4});
  b.Node("out", "Mul", {"mul", "along_width"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report = MustApply(&graph, kFold, "in", "out");
  EXPECT_EQ(Show(graph, "mul"), "Conv2D(in, w)");
  EXPECT_EQ(Show(graph, "out"), "Mul(mul, along_width)");
  EXPECT_THAT(FloatsOf(graph, "w"), ElementsAre(2, -6, 12, 8, 15, -24));
  EXPECT_THAT(Skipped(report), ElementsAre(HasSubstr("out: ")));
}

TEST(FoldScaleAndShiftTest, LeavesABiasAndOtherSumsAlone) {
  GraphBuilder b = WithConv();
  b.Floats("bias", {3}, {1, 2, 3});
  b.Node("biased", "BiasAdd", {"conv", "bias"}, FloatT());
  b.Floats("two", {}, {2});
  b.Node("far", "Relu", {"biased"}, FloatT());
  b.Node("out", "Mul", {"far", "two"}, FloatT());
  Graph graph;
  const TransformReport report = FoldAndCompare(b, &graph);
  EXPECT_EQ(report.nodes_changed, 0);
  EXPECT_THAT(Skipped(report), IsEmpty());
}

TEST(FoldScaleAndShiftTest, LeavesWhatSomethingElseSees) {
  GraphBuilder leaky = WithConv();
  leaky.Floats("alpha", {}, {0.2f});
  leaky.Node("mul", "Mul", {"conv", "alpha"}, FloatT());
  leaky.Node("out", "Maximum", {"conv", "mul"}, FloatT());
  Graph graph;
  EXPECT_THAT(Skipped(FoldAndCompare(leaky, &graph)),
              ElementsAre("mul: 'conv' is also used by 'out'"));

  GraphBuilder shared = WithConv();
  shared.Conv2D("other", "in", "conv/w");
  shared.Floats("scale", {3}, {2, 3, 4});
  shared.Node("mul", "Mul", {"conv", "scale"}, FloatT());
  shared.Node("out", "Add", {"mul", "other"}, FloatT());
  EXPECT_THAT(Skipped(FoldAndCompare(shared, &graph)),
              ElementsAre("mul: 'conv/w' is also used by 'other'"));

  GraphBuilder output = WithConv();
  output.Floats("scale", {3}, {2, 3, 4});
  output.Node("mul", "Mul", {"conv", "scale"}, FloatT());
  output.Floats("shift", {3}, {1, 1, 1});
  output.Node("add", "Add", {"mul", "shift"}, FloatT());
  graph = output.Build();
  MustApply(&graph, kFold, "in", "add,mul");
  EXPECT_EQ(Show(graph, "add"), "Add(mul, shift)");
  EXPECT_EQ(Show(graph, "mul"), "Conv2D(in, conv/w)");
}

TEST(FoldScaleAndShiftTest, LeavesConstantsThatDoNotFit) {
  GraphBuilder b = WithConv();
  b.Floats("rows", {4, 1, 1}, {1, 2, 3, 4});
  b.Node("out", "Mul", {"conv", "rows"}, FloatT());
  Graph graph;
  EXPECT_THAT(Skipped(FoldAndCompare(b, &graph)),
              ElementsAre(HasSubstr("do not go along the channels of 'conv'")));
  GraphBuilder zero = WithConv();
  zero.Floats("zero", {}, {0});
  zero.Node("out", "RealDiv", {"conv", "zero"}, FloatT());
  graph = zero.Build();
  EXPECT_THAT(Skipped(MustApply(&graph, kFold, "in", "out")),
              ElementsAre("out: it divides by zero"));
}

TEST(FoldScaleAndShiftTest, CarriesControlEdges) {
  GraphBuilder b = WithConv();
  b.Placeholder("first", {});
  b.Floats("scale", {3}, {2, 3, 4});
  b.mutable_def()->mutable_node(b.def().node_size() - 1)->add_input("^first");
  b.Node("mul", "Mul", {"conv", "scale"}, FloatT());
  b.Floats("shift", {3}, {1, 1, 1});
  b.Node("add", "Add", {"mul", "shift"}, FloatT());
  b.Node("late", "Relu", {"first", "^add"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, kFold, "in,first", "add,late");
  EXPECT_EQ(Show(graph, "add"), "BiasAdd(conv, conv_bn_offset, ^first)");
  EXPECT_EQ(Show(graph, "conv_bn_offset"), "Const(^first)");
  EXPECT_EQ(Show(graph, "late"), "Relu(first, ^add)");
}

TEST(FoldScaleAndShiftTest, EndsOnLongChainsThatLeadNowhere) {
  GraphBuilder b;
  b.Placeholder("in", {2, 4, 4, 2});
  b.Floats("two", {}, {2});
  std::string last = "in";
  for (int i = 0; i < 20000; ++i) {
    const std::string name = absl::StrCat("mul", i);
    b.Node(name, "Mul", {last, "two"}, FloatT());
    last = name;
  }
  Graph graph = b.Build();
  EXPECT_THAT(Skipped(MustApply(&graph, kFold, "in", last)), IsEmpty());
}

}  // namespace
}  // namespace optfarm::transforms::testing
