#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Atrous {
  std::vector<int32_t> block = {2, 2};
  std::vector<int32_t> paddings = {2, 3, 2, 3};
  std::vector<int32_t> crops = {0, 1, 0, 1};
  std::string op = "Conv2D";
  std::string padding = "VALID";
  int64_t stride = 1;
};

// A 7 by 7 picture, 3 by 3 filter.
GraphBuilder Build(const Atrous& atrous) {
  GraphBuilder b;
  b.Placeholder("in", {1, 7, 7, 2});
  b.Ints("block", {2}, atrous.block);
  b.Ints("paddings", {2, 2}, atrous.paddings);
  b.Ints("crops", {2, 2}, atrous.crops);
  b.Floats("filter", {3, 3, 2, 2}, WaveValues(36));
  const Attrs types = FloatT({{"Tblock_shape", TypeAttr(tensorflow::DT_INT32)},
                              {"Tpaddings", TypeAttr(tensorflow::DT_INT32)}});
  b.Node("batch", "SpaceToBatchND", {"in", "block", "paddings"}, types);
  b.Node("conv", atrous.op, {"batch", "filter"},
         FloatT({{"strides", IntsAttr({1, atrous.stride, atrous.stride, 1})},
                 {"padding", StringAttr(atrous.padding)}}));
  b.Node("space", "BatchToSpaceND", {"conv", "block", "crops"},
         FloatT({{"Tblock_shape", TypeAttr(tensorflow::DT_INT32)},
                 {"Tcrops", TypeAttr(tensorflow::DT_INT32)}}));
  b.Node("out", "Relu", {"space"}, FloatT());
  return b;
}

TransformReport FlattenAndCompare(const GraphBuilder& b, Graph* graph) {
  *graph = b.Build();
  const Tensor in = Wave({1, 7, 7, 2});
  const std::vector<float> before = testing::Run(*graph, "in", in, "out");
  const TransformReport report =
      MustApply(graph, "flatten_atrous_conv", "in", "out");
  EXPECT_THAT(testing::Run(*graph, "in", in, "out"), AllNear(before, 1e-5f));
  return report;
}

TEST(FlattenAtrousConvTest, PutsZerosBetweenTheTaps) {
  for (const char* op : {"Conv2D", "DepthwiseConv2dNative"}) {
    Graph graph;
    Atrous atrous;
    atrous.op = op;
    EXPECT_EQ(FlattenAndCompare(Build(atrous), &graph).nodes_changed, 1);
    EXPECT_THAT(Names(graph), ElementsAre("in", "filter", "space", "out"));
    EXPECT_EQ(Show(graph, "space"), std::string(op) + "(in, filter)");
    EXPECT_EQ(graph.node(graph.Find("space")).FindAttr("padding")->s(), "SAME");
    const std::vector<float> filter = FloatsOf(graph, "filter");
    ASSERT_EQ(filter.size(), 100u);
    EXPECT_EQ(filter[4], 0);
    EXPECT_EQ(filter[8], WaveValues(36)[4]);
  }
}

TEST(FlattenAtrousConvTest, KnowsValidConvolutions) {
  Graph graph;
  FlattenAndCompare(Build({.paddings = {0, 1, 0, 1}, .crops = {0, 1, 0, 1}}),
                    &graph);
  EXPECT_EQ(graph.node(graph.Find("space")).FindAttr("padding")->s(), "VALID");
}

TEST(FlattenAtrousConvTest, DilatesEachDirectionByItself) {
  Graph graph;
  FlattenAndCompare(
      Build({.block = {1, 3}, .paddings = {1, 1, 3, 5}, .crops = {0, 0, 0, 2}}),
      &graph);
  EXPECT_EQ(FloatsOf(graph, "filter").size(), 3u * 7 * 4);
}

TEST(FlattenAtrousConvTest, LeavesASharedFilterToTheOthers) {
  GraphBuilder b = Build({});
  b.Conv2D("other", "in", "filter");
  b.Node("sum", "Add", {"space", "other"}, FloatT());
  Graph graph = b.Build();
  const Tensor in = Wave({1, 7, 7, 2});
  const std::vector<float> before = testing::Run(graph, "in", in, "sum");
  MustApply(&graph, "flatten_atrous_conv", "in", "sum");
  EXPECT_EQ(Show(graph, "space"), "Conv2D(in, filter_1)");
  EXPECT_THAT(testing::Run(graph, "in", in, "sum"), AllNear(before, 1e-5f));
}

TEST(FlattenAtrousConvTest, KeepsThePortThatIsReadAndControlInputs) {
  GraphBuilder b;
  b.Node("start", "NoOp", {});
  b.Placeholder("x", {1, 7, 7, 4});
  b.Ints("axis", {}, {3});
  b.Node("in", "Split", {"axis", "x"}, FloatT({{"num_split", IntAttr(2)}}));
  GraphBuilder rest = Build({});
  for (tensorflow::NodeDef node : rest.def().node()) {
    if (node.name() == "in") continue;
    if (node.name() == "batch") {
      node.set_input(0, "in:1");
      node.add_input("^start");
    }
    *b.mutable_def()->add_node() = node;
  }
  Graph graph = b.Build();
  MustApply(&graph, "flatten_atrous_conv", "x", "out");
  EXPECT_EQ(Show(graph, "space"), "Conv2D(in:1, filter, ^start)");
}

TEST(FlattenAtrousConvTest, SaysWhyAConvolutionStays) {
  const auto skipped = [](const Atrous& atrous) {
    Graph graph = Build(atrous).Build();
    return Skipped(MustApply(&graph, "flatten_atrous_conv", "in", "out"));
  };
  EXPECT_THAT(skipped({.paddings = {2, 3, 2, 3}, .crops = {1, 0, 0, 1}}),
              ElementsAre(HasSubstr("neither SAME nor VALID")));
  EXPECT_THAT(skipped({.padding = "SAME"}),
              ElementsAre(HasSubstr("pads every block")));
  EXPECT_THAT(skipped({.stride = 2}), ElementsAre(HasSubstr("strides")));
  EXPECT_THAT(skipped({.block = {1 << 20, 1 << 20}}),
              ElementsAre(HasSubstr("more than this is good for")));
  EXPECT_THAT(skipped({.block = {0, 2}}),
              ElementsAre(HasSubstr("no dilation")));
  GraphBuilder b = Build({});
  b.Node("other", "Relu", {"conv"}, FloatT());
  Graph graph = b.Build();
  EXPECT_THAT(Skipped(MustApply(&graph, "flatten_atrous_conv", "in", "out")),
              ElementsAre(HasSubstr("'conv' is also used by 'other'")));
}

}  // namespace
}  // namespace optfarm::transforms::testing
