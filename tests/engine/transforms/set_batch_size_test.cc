#include "engine/graph/shape_inference.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ShapeOf(const Graph& graph, const std::string& name) {
  const auto shapes = graph::InferShapes(graph);
  EXPECT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(shapes->problems(), IsEmpty());
  return shapes->Of({graph.Find(name), 0}).ToString();
}

std::vector<float> OutOf(const Graph& graph, const Tensor& in) {
  return Run(graph, "in", in, "out");
}

std::string ErrorOf(const GraphBuilder& b, const std::string& arguments,
                    const std::string& outputs = "out") {
  Graph graph = b.Build();
  return std::string(
      Apply(&graph, "set_batch_size(" + arguments + ")", "", outputs)
          .status()
          .message());
}

// A convolution, flattened by a Reshape to the batch of one, and a product.
GraphBuilder Classifier() {
  GraphBuilder b;
  b.Placeholder("in", {1, 2, 2, 3});
  b.Floats("w", {1, 1, 3, 2}, {1, 2, 3, 4, 5, 6});
  b.Conv2D("conv", "in", "w");
  b.Ints("flat/shape", {2}, {1, -1});
  b.Node("flat", "Reshape", {"conv", "flat/shape"}, FloatT());
  b.Floats("fc", {8, 2},
           {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  b.Node("out", "MatMul", {"flat", "fc"}, FloatT());
  return b;
}

TEST(SetBatchSizeTest, ChangesInputsAndReshapes) {
  const GraphBuilder b = Classifier();
  Graph graph = b.Build();
  const Tensor two = Wave({2, 2, 2, 3});
  std::vector<float> one_by_one;
  for (int i = 0; i < 2; ++i) {
    const Tensor one = Tensor::FromValues<float>(
        {1, 2, 2, 3}, two.flat<float>().subspan(i * 12, 12));
    for (float v : OutOf(graph, one)) one_by_one.push_back(v);
  }
  EXPECT_EQ(MustApply(&graph, "set_batch_size(batch_size=2)", "in", "out")
                .nodes_changed,
            2);
  EXPECT_EQ(ShapeOf(graph, "in"), "[2,2,2,3]");
  EXPECT_EQ(ShapeOf(graph, "out"), "[2,2]");
  EXPECT_THAT(OutOf(graph, two), AllNear(one_by_one, 1e-5f));
}

TEST(SetBatchSizeTest, ScalesSizesThatAreMultiples) {
  GraphBuilder b;
  b.Placeholder("in", {2, 3, 4});
  b.Ints("rows", {2}, {6, 4});
  b.Node("flat", "Reshape", {"in", "rows"}, FloatT());
  b.Ints("shape", {3}, {2, 3, 4});
  b.Node("back", "Reshape", {"flat", "shape"}, FloatT());
  // The same constant means something else here.
  b.Node("size", "Cast", {"shape"},
         {{"SrcT", TypeAttr(tensorflow::DT_INT32)},
          {"DstT", TypeAttr(tensorflow::DT_FLOAT)}});
  b.Node("out", "Relu", {"back"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "set_batch_size(batch_size=8)", "in", "out,size");
  EXPECT_EQ(ShapeOf(graph, "flat"), "[24,4]");
  EXPECT_EQ(ShapeOf(graph, "out"), "[8,3,4]");
  EXPECT_EQ(Show(graph, "size"), "Cast(shape)");
}

TEST(SetBatchSizeTest, ChangesWhatPackPutsTogetherAndLeavesTheRestOpen) {
  GraphBuilder b;
  b.Placeholder("in", {1, 6});
  b.Ints("one", {}, {1});
  b.Ints("two", {}, {2});
  b.Ints("three", {}, {3});
  b.Node("packed", "Pack", {"one", "two", "three"},
         {{"T", TypeAttr(tensorflow::DT_INT32)}, {"N", IntAttr(3)}});
  b.Node("parts", "Reshape", {"in", "packed"}, FloatT());
  b.Node("out", "Relu", {"parts"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "set_batch_size(batch_size=-1)", "in", "out");
  EXPECT_EQ(ShapeOf(graph, "in"), "[?,6]");
  EXPECT_EQ(ShapeOf(graph, "out"), "[?,2,3]");
}

TEST(SetBatchSizeTest, LeavesOneDimensionOpenOnly) {
  Graph graph = Classifier().Build();
  MustApply(&graph, "set_batch_size(batch_size=-1)", "in", "out");
  EXPECT_EQ(ShapeOf(graph, "flat"), "[?,8]");
  EXPECT_EQ(OutOf(graph, Wave({3, 2, 2, 3})).size(), 6u);
}

TEST(SetBatchSizeTest, GivesEachItemTheSameInitialState) {
  for (const bool is_constant : {false, true}) {
    GraphBuilder b;
    b.Placeholder("in", {1, 2});
    if (is_constant) {
      b.Floats("state", {1, 3}, {0, 0, 0});
    } else {
      b.Ints("dims", {2}, {1, 3});
      b.Floats("zero", {}, {0});
      b.Node("state", "Fill", {"dims", "zero"}, FloatT());
    }
    b.Ints("axis", {}, {1});
    b.Node("joined", "ConcatV2", {"in", "state", "axis"},
           FloatT({{"N", IntAttr(2)}}));
    b.Node("out", "Relu", {"joined"}, FloatT());
    Graph graph = b.Build();
    MustApply(&graph, "set_batch_size(batch_size=4)", "in", "out");
    EXPECT_EQ(ShapeOf(graph, "out"), "[4,5]") << is_constant;
  }
}

TEST(SetBatchSizeTest, NamesWhatCannotBeChanged) {
  GraphBuilder apart;
  apart.Placeholder("in", {2, 3});
  apart.Node("items", "Unpack", {"in"},
             FloatT({{"num", IntAttr(2)}, {"axis", IntAttr(0)}}));
  apart.Node("out", "Add", {"items", "items:1"}, FloatT());
  EXPECT_THAT(ErrorOf(apart, "batch_size=3"),
              AllOf(HasSubstr("changing the batch size from 2 to 3"),
                    HasSubstr("'items'")));
  GraphBuilder mixed;
  mixed.Placeholder("in", {2, 3});
  mixed.Ints("axis", {1}, {0});
  mixed.Node("out", "Mean", {"in", "axis"}, FloatT());
  EXPECT_THAT(ErrorOf(mixed, "batch_size=3"),
              HasSubstr("node 'out' (Mean): its result has the shape [3] "
                        "whatever the batch size is"));
  GraphBuilder odd;
  odd.Placeholder("in", {2, 3});
  odd.Ints("shape", {2}, {3, 2});
  odd.Node("out", "Reshape", {"in", "shape"}, FloatT());
  EXPECT_THAT(ErrorOf(odd, "batch_size=4"),
              HasSubstr("node 'out' (Reshape) takes the shape [3,2] from "
                        "'shape'"));
}

TEST(SetBatchSizeTest, FillsInASizeThatWasOpen) {
  GraphBuilder b;
  b.Placeholder("in", {-1, 2, 3});
  b.Ints("shape", {2}, {-1, 6});
  b.Node("flat", "Reshape", {"in", "shape"}, FloatT());
  b.Node("out", "Relu", {"flat"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "set_batch_size(batch_size=4)", "in", "out");
  EXPECT_EQ(ShapeOf(graph, "out"), "[4,6]");
}

TEST(SetBatchSizeTest, SeesThatTrainingMixesItems) {
  GraphBuilder b;
  b.Placeholder("in", {1, 2, 2, 1});
  for (const char* name : {"gamma", "beta"}) b.Floats(name, {1}, {1});
  for (const char* name : {"mean", "variance"}) b.Floats(name, {0}, {});
  b.Node("out", "FusedBatchNorm", {"in", "gamma", "beta", "mean", "variance"},
         FloatT());
  EXPECT_THAT(ErrorOf(b, "batch_size=2"),
              HasSubstr("node 'out' (FusedBatchNorm): it normalizes by the "
                        "statistics of all items together"));
}

TEST(SetBatchSizeTest, NeedsToKnowWhichInputsCarryTheBatch) {
  GraphBuilder b = Classifier();
  b.Placeholder("thresholds", {3});
  b.Node("other", "Relu", {"thresholds"}, FloatT());
  EXPECT_THAT(ErrorOf(b, "batch_size=2", "out,other"),
              HasSubstr("name those that carry the batch with 'input'"));
  EXPECT_EQ(ErrorOf(b, "batch_size=2, input=in", "out,other"), "");
  EXPECT_THAT(ErrorOf(b, "batch_size=2, input=w", "out,other"),
              HasSubstr("has no batch dimension"));
  EXPECT_THAT(ErrorOf(b, "batch_size=0", "out,other"),
              HasSubstr("it must be 1 or more"));
}

}  // namespace
}  // namespace optfarm::transforms::testing
