#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SortByExecutionOrderTest, TakesTheLastReadyNodeFirst) {
  GraphBuilder b;
  b.Node("d", "Add", {"b", "c"}, FloatT());
  b.Node("b", "Relu", {"a"}, FloatT());
  b.Node("c", "Relu", {"a"}, FloatT());
  b.Placeholder("a", {2});
  b.Placeholder("z", {2});
  Graph graph = b.Build();
  MustApply(&graph, "sort_by_execution_order", "a", "d");
  EXPECT_THAT(Names(graph), ElementsAre("z", "a", "c", "b", "d"));
}

TEST(SortByExecutionOrderTest, CountsAnInputThatIsReadTwice) {
  GraphBuilder b;
  b.Node("square", "Mul", {"a", "a"}, FloatT());
  b.Placeholder("a", {2});
  Graph graph = b.Build();
  MustApply(&graph, "sort_by_execution_order", "a", "square");
  EXPECT_THAT(Names(graph), ElementsAre("a", "square"));
}

TEST(SortByExecutionOrderTest, GoesThroughALoopOnce) {
  GraphBuilder b;
  b.Node("merge", "Merge", {"enter", "next"}, FloatT({{"N", IntAttr(2)}}));
  b.Node("next", "NextIteration", {"body"}, FloatT());
  b.Node("body", "Relu", {"merge"}, FloatT());
  b.Node("enter", "Enter", {"a"}, FloatT({{"frame_name", StringAttr("f")}}));
  b.Placeholder("a", {2});
  Graph graph = b.Build();
  MustApply(&graph, "sort_by_execution_order", "a", "body");
  EXPECT_THAT(Names(graph), ElementsAre("a", "enter", "merge", "body", "next"));
}

TEST(SortByExecutionOrderTest, TellsOfACycle) {
  GraphBuilder b;
  b.Placeholder("a", {2});
  b.Node("x", "Add", {"a", "y"}, FloatT());
  b.Node("y", "Relu", {"x"}, FloatT());
  Graph graph = b.Build();
  EXPECT_THAT(Apply(&graph, "sort_by_execution_order", "a", "y"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("2 nodes in a cycle")));
}

}  // namespace
}  // namespace optfarm::transforms::testing
