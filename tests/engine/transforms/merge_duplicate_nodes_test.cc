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

}  // namespace
}  // namespace optfarm::transforms::testing
