#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;

TEST(MergeDuplicateNodesTest, MergesUntilNothingIsEqual) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Floats("c1", {}, {1});
  b.Floats("c2", {}, {1});
  b.Node("a1", "Add", {"x", "c1"}, FloatT());
  b.Node("a2", "Add", {"x", "c2"}, FloatT());
  b.Node("out", "Mul", {"a1", "a2", "^c2"}, FloatT());
  Graph graph = b.Build();
  EXPECT_EQ(
      MustApply(&graph, "merge_duplicate_nodes", "x", "out").nodes_changed, 2);
  EXPECT_THAT(Names(graph), ElementsAre("x", "c1", "a1", "out"));
  EXPECT_EQ(Show(graph, "out"), "Mul(a1, a1, ^c1)");
}

TEST(MergeDuplicateNodesTest, MergesDeepChainsInAnyOrderAtOnce) {
  constexpr int kDepth = 20000;
  GraphBuilder b;
  // The file has the chains' ends first.
  b.Node("out", "Add", {"a0", "b0"}, FloatT());
  for (int i = 0; i < kDepth; ++i) {
    for (const char* chain : {"a", "b"}) {
      const std::string next =
          i + 1 < kDepth ? chain + std::to_string(i + 1) : "x";
      b.Node(chain + std::to_string(i), "Relu", {next}, FloatT());
    }
  }
  b.Placeholder("x", {2});
  Graph graph = b.Build();
  EXPECT_EQ(
      MustApply(&graph, "merge_duplicate_nodes", "x", "out").nodes_changed,
      kDepth);
  EXPECT_EQ(Show(graph, "out"), "Add(a0, a0)");
}

TEST(MergeDuplicateNodesTest, MergesAroundLoops) {
  GraphBuilder b;
  b.Placeholder("x", {});
  Attrs frame = FloatT({{"frame_name", StringAttr("while")}});
  b.Node("enter", "Enter", {"x"}, frame);
  b.Node("merge", "Merge", {"enter", "next"}, FloatT({{"N", IntAttr(2)}}));
  b.Node("one", "Relu", {"merge"}, FloatT());
  b.Node("two", "Relu", {"merge"}, FloatT());
  b.Node("next", "NextIteration", {"one"}, FloatT());
  b.Node("next2", "NextIteration", {"two"}, FloatT());
  b.Node("merge2", "Merge", {"enter", "next2"}, FloatT({{"N", IntAttr(2)}}));
  b.Node("sum", "Add", {"merge", "merge2"}, FloatT());
  b.Node("out", "Exit", {"sum"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "merge_duplicate_nodes", "x", "out");
  EXPECT_EQ(Show(graph, "sum"), "Add(merge, merge)");
  EXPECT_EQ(graph.Find("two"), graph::kNoNode);
}

TEST(MergeDuplicateNodesTest, LeavesWhatIsNotEqual) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Placeholder("y", {2});
  b.Node("relu", "Relu", {"x"}, FloatT());
  b.Node("relu_of_y", "Relu", {"y"}, FloatT());
  b.Node("relu6", "Relu6", {"x"}, FloatT());
  b.Node("elsewhere", "Relu", {"x"}, FloatT()).set_device("/gpu:0");
  b.Node("later", "Relu", {"x", "^y"}, FloatT());
  b.Floats("c1", {}, {1});
  b.Floats("c2", {}, {2});
  b.Node("sum", "AddN",
         {"relu", "relu_of_y", "relu6", "elsewhere", "later", "c1", "c2"},
         FloatT({{"N", IntAttr(7)}}));
  Graph graph = b.Build();
  EXPECT_EQ(
      MustApply(&graph, "merge_duplicate_nodes", "x,y", "sum").nodes_changed,
      0);
}

TEST(MergeDuplicateNodesTest, LeavesStatefulNodesPlaceholdersAndOutputs) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Placeholder("unnamed", {2});
  b.Ints("shape", {1}, {2});
  const Attrs random = {{"T", TypeAttr(tensorflow::DT_INT32)},
                        {"dtype", TypeAttr(tensorflow::DT_FLOAT)}};
  b.Node("r1", "RandomUniform", {"shape"}, random);
  b.Node("r2", "RandomUniform", {"shape"}, random);
  b.Node("o1", "Add", {"r1", "x"}, FloatT());
  b.Node("o2", "Add", {"r2", "unnamed"}, FloatT());
  b.Node("p1", "Relu", {"x"}, FloatT());
  b.Node("p2", "Relu", {"x"}, FloatT());
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, "merge_duplicate_nodes", "x", "o1,o2,p1:0,p2")
                .nodes_changed,
            0);
}

TEST(MergeDuplicateNodesTest, ComparesLargeTensorsWhole) {
  GraphBuilder b;
  for (const auto& [name, middle] :
       {std::pair("c1", 'x'), std::pair("c2", 'y'), std::pair("c3", 'x')}) {
    std::string bytes(4000, 'z');
    bytes[2000] = middle;
    tensorflow::AttrValue value;
    value.mutable_tensor()->set_dtype(tensorflow::DT_FLOAT);
    value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(1000);
    value.mutable_tensor()->set_tensor_content(bytes);
    b.Node(name, "Const", {},
           {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}, {"value", value}});
  }
  b.Node("out", "AddN", {"c1", "c2", "c3"}, FloatT({{"N", IntAttr(3)}}));
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, "merge_duplicate_nodes", "", "out").nodes_changed,
            1);
  EXPECT_EQ(Show(graph, "out"), "AddN(c1, c2, c1)");
}

}  // namespace
}  // namespace optfarm::transforms::testing
