#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RemoveNodesTest, BypassesChains) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Node("i1", "Identity", {"x"}, FloatT());
  b.Node("i2", "Identity", {"i1"}, FloatT());
  b.Node("check", "CheckNumerics", {"i2"},
         FloatT({{"message", StringAttr("")}}));
  b.Node("out", "Relu", {"check"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "remove_nodes(op=Identity, op=CheckNumerics)", "x", "out");
  EXPECT_THAT(Names(graph), ElementsAre("x", "out"));
  EXPECT_EQ(Show(graph, "out"), "Relu(x)");
}

TEST(RemoveNodesTest, KeepsThePortThatWasRead) {
  GraphBuilder b;
  b.Placeholder("x", {4});
  b.Ints("axis", {}, {0});
  b.Node("halves", "Split", {"axis", "x"}, FloatT({{"num_split", IntAttr(2)}}));
  b.Node("pass", "Identity", {"halves:1"}, FloatT());
  b.Node("out", "Relu", {"pass"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "remove_nodes(op=Identity)", "x", "out");
  EXPECT_EQ(Show(graph, "out"), "Relu(halves:1)");
}

TEST(RemoveNodesTest, CarriesControlEdges) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Placeholder("first", {2});
  b.Node("pass", "Identity", {"x", "^first"}, FloatT());
  b.Node("out", "Relu", {"pass"}, FloatT());
  b.Node("late", "Relu", {"first", "^pass"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "remove_nodes(op=Identity)", "x", "out,late");
  EXPECT_EQ(Show(graph, "out"), "Relu(x, ^first)");
  EXPECT_EQ(Show(graph, "late"), "Relu(first, ^x, ^first)");
}

TEST(RemoveNodesTest, LeavesInputsAndOutputs) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Node("in", "Identity", {"x"}, FloatT());
  b.Node("out", "Identity", {"in"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "remove_nodes(op=Identity)", "in", "out:0");
  EXPECT_THAT(Names(graph), ElementsAre("x", "in", "out"));
  EXPECT_THAT(Skipped(report), ElementsAre(HasSubstr("in: it is an input"),
                                           HasSubstr("out: it is an input")));
}

TEST(RemoveNodesTest, LeavesWhatTellsTheBranchOfACondition) {
  GraphBuilder b;
  b.Placeholder("p", {}, tensorflow::DT_BOOL);
  const Attrs bool_t = {{"T", TypeAttr(tensorflow::DT_BOOL)}};
  b.Node("switch", "Switch", {"p", "p"}, bool_t);
  b.Node("switch_t", "Identity", {"switch:1"}, bool_t);
  b.Floats("one", {}, {1});
  b.mutable_def()->mutable_node(3)->add_input("^switch_t");
  b.Node("out", "Relu", {"one"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "remove_nodes(op=Identity)", "p", "out");
  EXPECT_EQ(Show(graph, "one"), "Const(^switch_t)");
}

TEST(RemoveNodesTest, RemovesNodesWithMoreInputsWhenTold) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Floats("min", {}, {0});
  b.Floats("max", {}, {6});
  b.Node("fake", "FakeQuantWithMinMaxVars", {"x", "min", "max"});
  b.Node("out", "Add", {"fake", "max"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "remove_nodes(op=FakeQuantWithMinMaxVars)", "x", "out");
  EXPECT_EQ(Show(graph, "out"), "Add(fake, max)");
  MustApply(&graph, "remove_nodes(op=FakeQuantWithMinMaxVars, max_inputs=3)",
            "x", "out");
  // max is used elsewhere and stays.
  EXPECT_THAT(Names(graph), ElementsAre("x", "max", "out"));
  EXPECT_EQ(Show(graph, "out"), "Add(x, max)");
}

}  // namespace
}  // namespace optfarm::transforms::testing
