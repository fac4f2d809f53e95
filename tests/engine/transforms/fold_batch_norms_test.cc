#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Applies fold_batch_norms and checks that the graph still computes the same.
TransformReport FoldAndCompare(GraphBuilder* b, Graph* graph,
                               const runtime::Shape& shape) {
  *graph = b->Build();
  const Tensor in = Wave(shape);
  const std::vector<float> before = Run(*graph, "in", in, "out");
  const TransformReport report =
      MustApply(graph, "fold_batch_norms", "in", "out");
  EXPECT_THAT(Run(*graph, "in", in, "out"), AllNear(before, 1e-4f));
  return report;
}

TEST(FoldBatchNormsTest, FoldsIntoAConvolution) {
  GraphBuilder b;
  b.Placeholder("in", {1, 3, 3, 2});
  b.Floats("w", {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  b.Conv2D("conv", "in", "w");
  b.Floats("scale", {3}, {2, 3, 4});
  b.Node("mul", "Mul", {"conv", "scale"}, FloatT());
  b.Node("out", "Relu", {"mul"}, FloatT());
  Graph graph;
  EXPECT_EQ(FoldAndCompare(&b, &graph, {1, 3, 3, 2}).nodes_changed, 1);
  EXPECT_THAT(SortedNames(graph), ElementsAre("in", "mul", "out", "w"));
  EXPECT_EQ(Show(graph, "mul"), "Conv2D(in, w)");
  EXPECT_THAT(FloatsOf(graph, "w"), ElementsAre(2, 6, 12, 8, 15, 24));
}

TEST(FoldBatchNormsTest, FoldsIntoADepthwiseConvolution) {
  GraphBuilder b;
  b.Placeholder("in", {1, 3, 3, 2});
  b.Floats("w", {1, 1, 2, 2}, {1, 2, 3, 4});
  b.Node("conv", "DepthwiseConv2dNative", {"in", "w"},
         FloatT({{"strides", IntsAttr({1, 1, 1, 1})},
                 {"padding", StringAttr("SAME")}}));
  b.Floats("scale", {4}, {2, 3, 4, 5});
  b.Node("mul", "Mul", {"conv", "scale"}, FloatT());
  b.Node("out", "Relu", {"mul"}, FloatT());
  Graph graph;
  FoldAndCompare(&b, &graph, {1, 3, 3, 2});
  EXPECT_THAT(FloatsOf(graph, "w"), ElementsAre(2, 6, 12, 20));
}

TEST(FoldBatchNormsTest, ScalesTheRowsOfTransposedWeights) {
  for (const bool transpose : {false, true}) {
    GraphBuilder b;
    b.Placeholder("in", {2, 2});
    b.Floats("w", {2, 2}, {1, 2, 3, 4});
    b.Node("product", "MatMul", {"in", "w"},
           FloatT({{"transpose_b", BoolAttr(transpose)}}));
    b.Floats("scale", {2}, {10, 100});
    b.Node("mul", "Mul", {"product", "scale"}, FloatT());
    b.Node("out", "Relu", {"mul"}, FloatT());
    Graph graph;
    FoldAndCompare(&b, &graph, {2, 2});
    EXPECT_EQ(Show(graph, "mul"), "MatMul(in, w)");
    EXPECT_THAT(FloatsOf(graph, "w"), transpose
                                          ? ElementsAre(10, 20, 300, 400)
                                          : ElementsAre(10, 200, 30, 400));
  }
}

TEST(FoldBatchNormsTest, FoldsConvolutionsThatShareTheirInput) {
  GraphBuilder b;
  b.Placeholder("in", {1, 3, 3, 1});
  for (const std::string i : {"1", "2"}) {
    b.Floats("w" + i, {1, 1, 1, 1}, {3});
    b.Conv2D("conv" + i, "in", "w" + i);
    b.Floats("scale" + i, {1}, {2});
    b.Node("mul" + i, "Mul", {"conv" + i, "scale" + i}, FloatT());
  }
  b.Node("out", "Add", {"mul1", "mul2"}, FloatT());
  Graph graph;
  EXPECT_EQ(FoldAndCompare(&b, &graph, {1, 3, 3, 1}).nodes_changed, 2);
}

TEST(FoldBatchNormsTest, LeavesAFactorThatIsNoVectorOfChannels) {
  GraphBuilder b;
  b.Placeholder("in", {1, 3, 3, 1});
  b.Floats("w", {1, 1, 1, 2}, {3, 4});
  b.Conv2D("conv", "in", "w");
  b.Floats("alpha", {}, {0.2f});
  b.Node("out", "Mul", {"conv", "alpha"}, FloatT());
  Graph graph;
  EXPECT_THAT(Skipped(FoldAndCompare(&b, &graph, {1, 3, 3, 1})),
              ElementsAre(HasSubstr("out: Mul constant input to batch norm has "
                                    "bad shape: []")));
}

TEST(FoldBatchNormsTest, LeavesWhatSomethingElseSees) {
  // Weights of two convolutions, one of which is scaled.
  GraphBuilder shared_weights;
  shared_weights.Placeholder("in", {1, 3, 3, 1});
  shared_weights.Floats("w", {1, 1, 1, 1}, {3});
  shared_weights.Conv2D("conv", "in", "w");
  shared_weights.Conv2D("other", "in", "w");
  shared_weights.Floats("scale", {1}, {2});
  shared_weights.Node("mul", "Mul", {"conv", "scale"}, FloatT());
  shared_weights.Node("out", "Add", {"mul", "other"}, FloatT());
  Graph graph;
  EXPECT_THAT(Skipped(FoldAndCompare(&shared_weights, &graph, {1, 3, 3, 1})),
              ElementsAre(HasSubstr("'w' is also used by 'other'")));
  // A convolution that is an output itself.
  GraphBuilder output;
  output.Placeholder("in", {1, 3, 3, 1});
  output.Floats("w", {1, 1, 1, 1}, {3});
  output.Conv2D("conv", "in", "w");
  output.Floats("scale", {1}, {2});
  output.Node("mul", "Mul", {"conv", "scale"}, FloatT());
  graph = output.Build();
  EXPECT_THAT(
      Skipped(MustApply(&graph, "fold_batch_norms", "in", "mul,conv:0")),
      ElementsAre(HasSubstr("'conv' is an input or output")));
}

TEST(FoldBatchNormsTest, CarriesControlEdges) {
  GraphBuilder b;
  b.Placeholder("in", {1, 3, 3, 1});
  b.Placeholder("first", {});
  b.Floats("w", {1, 1, 1, 1}, {3});
  b.Conv2D("conv", "in", "w");
  b.Floats("scale", {1}, {2});
  b.Node("mul", "Mul", {"conv", "scale", "^first"}, FloatT());
  b.Node("out", "Relu", {"mul"}, FloatT());
  b.Node("late", "Relu", {"first", "^mul"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "fold_batch_norms", "in", "out,late");
  EXPECT_EQ(Show(graph, "mul"), "Conv2D(in, w, ^first)");
  EXPECT_EQ(Show(graph, "late"), "Relu(first, ^mul)");
}

}  // namespace
}  // namespace optfarm::transforms::testing
