#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// a (Placeholder), b (a Relu that is an input), both into out; c hangs on a
// control edge; rest is not needed.
Graph TwoInputs() {
  GraphBuilder b;
  b.Placeholder("raw", {2, 3});
  b.Placeholder("a", {2, 3});
  b.Node("b", "Relu", {"raw"}, FloatT()).set_device("/cpu:0");
  b.Floats("c", {}, {1});
  b.Node("out", "Add", {"a", "b", "^c"}, FloatT());
  b.Node("rest", "Relu", {"out"}, FloatT());
  return b.Build();
}

std::string ShapeOf(const Graph& graph, const std::string& name) {
  const auto* attr = graph.node(graph.Find(name)).FindAttr("shape");
  return graph::PartialShape::FromProto(attr->shape()).value().ToString();
}

tensorflow::DataType TypeOf(const Graph& graph, const std::string& name) {
  return graph.node(graph.Find(name)).FindAttr("dtype")->type();
}

TEST(StripUnusedNodesTest, CutsAtInputsAndKeepsWhatOutputsNeed) {
  Graph graph = TwoInputs();
  MustApply(&graph, "strip_unused_nodes(type=float, shape=\"1,2,3\")", "a,b:0",
            "out");
  EXPECT_THAT(Names(graph), ElementsAre("a", "b", "c", "out"));
  EXPECT_EQ(Show(graph, "b"), "Placeholder()");
  EXPECT_EQ(graph.node(graph.Find("b")).device(), "");
  EXPECT_EQ(ShapeOf(graph, "b"), "[1,2,3]");
  // It was a Placeholder already and is not touched.
  EXPECT_EQ(ShapeOf(graph, "a"), "[2,3]");
  EXPECT_EQ(Show(graph, "out"), "Add(a, b, ^c)");
}

TEST(StripUnusedNodesTest, GivesSingleInputsTheirOwnTypeAndShape) {
  Graph graph = TwoInputs();
  MustApply(&graph,
            "strip_unused_nodes(name=b, type_for_name=float, "
            "shape_for_name=\"-1,3\")",
            "a,b", "out");
  EXPECT_EQ(ShapeOf(graph, "b"), "[?,3]");
  EXPECT_EQ(TypeOf(graph, "b"), tensorflow::DT_FLOAT);
}

TEST(StripUnusedNodesTest, TakesTheNodesOwnTypeWhenNoneIsGiven) {
  GraphBuilder b;
  b.Placeholder("raw", {2});
  b.Node("shape", "Shape", {"raw"}, FloatT());
  b.Node("out", "Identity", {"shape"}, {{"T", TypeAttr(tensorflow::DT_INT32)}});
  Graph graph = b.Build();
  MustApply(&graph, "strip_unused_nodes", "shape", "out");
  EXPECT_EQ(TypeOf(graph, "shape"), tensorflow::DT_INT32);
  EXPECT_EQ(ShapeOf(graph, "shape"), "[]");
}

TEST(StripUnusedNodesTest, RefusesListsThatDoNotMatch) {
  Graph graph = TwoInputs();
  EXPECT_THAT(Apply(&graph, "strip_unused_nodes(name=b, type_for_name=float)",
                    "a,b", "out"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'shape_for_name' 0 times")));
}

TEST(StripUnusedNodesTest, KeepsAnInputWithSeveralOutputs) {
  GraphBuilder b;
  b.Placeholder("x", {4});
  b.Ints("axis", {}, {0});
  b.Node("halves", "Split", {"axis", "x"}, FloatT({{"num_split", IntAttr(2)}}));
  b.Node("out", "Add", {"halves", "halves:1"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "strip_unused_nodes", "halves,halves:1", "out");
  EXPECT_EQ(Show(graph, "halves"), "Split(axis, x)");
  EXPECT_EQ(report.skipped.size(), 2u);
}

TEST(StripUnusedNodesTest, KeepsInputsThatNothingNeeds) {
  Graph graph = TwoInputs();
  MustApply(&graph, "strip_unused_nodes", "raw,a,b", "out");
  EXPECT_THAT(Names(graph), ElementsAre("raw", "a", "b", "c", "out"));
}

}  // namespace
}  // namespace optfarm::transforms::testing
