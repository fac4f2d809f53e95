#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kLearning[] = "keras_learning_phase";

Attrs BoolT() { return {{"T", TypeAttr(tensorflow::DT_BOOL)}}; }

// An optional placeholder whose default is false.
void LearningPhase(GraphBuilder* b) {
  tensorflow::AttrValue shape, value;
  shape.mutable_shape();
  value.mutable_tensor()->set_dtype(tensorflow::DT_BOOL);
  value.mutable_tensor()->mutable_tensor_shape();
  value.mutable_tensor()->add_bool_val(false);
  b->Node("learning/default", "Const", {},
          {{"dtype", TypeAttr(tensorflow::DT_BOOL)}, {"value", value}});
  b->Node(kLearning, "PlaceholderWithDefault", {"learning/default"},
          {{"dtype", TypeAttr(tensorflow::DT_BOOL)}, {"shape", shape}});
}

// out = Relu(learning ? in * 2 : -in), as tf.cond writes it.
void Condition(GraphBuilder* b, const std::string& predicate) {
  b->Node("pick", "Switch", {predicate, predicate}, BoolT());
  b->Node("pick_t", "Identity", {"pick:1"}, BoolT());
  b->Node("pick_f", "Identity", {"pick"}, BoolT());
  b->Node("train/in", "Switch", {"in", predicate}, FloatT());
  b->Floats("train/two", {}, {2});
  b->mutable_def()
      ->mutable_node(b->def().node_size() - 1)
      ->add_input("^pick_t");
  b->Node("train", "Mul", {"train/in:1", "train/two"}, FloatT());
  b->Node("serve/in", "Switch", {"in", predicate}, FloatT());
  b->Node("serve", "Neg", {"serve/in"}, FloatT());
  b->Node("merge", "Merge", {"serve", "train"}, FloatT({{"N", IntAttr(2)}}));
  b->Node("out", "Relu", {"merge"}, FloatT());
}

GraphBuilder Model() {
  GraphBuilder b;
  b.Placeholder("in", {4});
  LearningPhase(&b);
  Condition(&b, kLearning);
  return b;
}

std::vector<float> OutOf(const Graph& graph, const Tensor& in) {
  return Run(graph, "in", in, "out");
}

TEST(FoldPlaceholderTest, KeepsTheServingBranchAlone) {
  Graph graph = Model().Build();
  const TransformReport report = MustApply(
      &graph, "fold_placeholder(name=keras_learning_phase, value=false)", "in",
      "out");
  EXPECT_THAT(SortedNames(graph), ElementsAre("in", "out", "serve"));
  EXPECT_EQ(Show(graph, "out"), "Relu(serve)");
  EXPECT_EQ(Show(graph, "serve"), "Neg(in)");
  EXPECT_GT(report.nodes_changed, 0);
}

TEST(FoldPlaceholderTest, KeepsTheTrainingBranchAlone) {
  Graph graph = Model().Build();
  const Tensor in = Wave({4});
  MustApply(&graph, "fold_placeholder(name=keras_learning_phase, value=true)",
            "in", "out");
  EXPECT_EQ(Show(graph, "out"), "Relu(train)");
  EXPECT_EQ(Show(graph, "train"), "Mul(in, train/two)");
  std::vector<float> expected;
  for (float v : in.flat<float>()) expected.push_back(v > 0 ? 2 * v : 0);
  EXPECT_THAT(OutOf(graph, in), AllNear(expected, 1e-6f));
}

TEST(FoldPlaceholderTest, TakesTheDefaultOfAnOptionalPlaceholder) {
  Graph graph = Model().Build();
  MustApply(&graph, "fold_placeholder(name=keras_learning_phase)", "in", "out");
  EXPECT_EQ(Show(graph, "out"), "Relu(serve)");
  graph = Model().Build();
  EXPECT_THAT(
      Apply(&graph, "fold_placeholder(name=in)", "", "out").status().message(),
      HasSubstr("folding the tensor 'in': it has no default of its own; give "
                "'value'"));
}

TEST(FoldPlaceholderTest, TakesAllOptionalPlaceholdersThatNobodyFeeds) {
  Graph graph = Model().Build();
  MustApply(&graph, "fold_placeholder", "in", "out");
  EXPECT_EQ(Show(graph, "out"), "Relu(serve)");
  graph = Model().Build();
  EXPECT_EQ(
      MustApply(&graph, "fold_placeholder", "in,keras_learning_phase", "out")
          .nodes_changed,
      0);
}

TEST(FoldPlaceholderTest, SeesThroughLogicAndNestedConditions) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  LearningPhase(&b);
  b.Placeholder("other", {}, tensorflow::DT_BOOL);
  b.Node("serving", "LogicalNot", {kLearning});
  // Inside of a branch of `other` the predicate comes through a Switch.
  b.Node("outer/in", "Switch", {"in", "other"}, FloatT());
  b.Node("outer/serving", "Switch", {"serving", "other"}, BoolT());
  b.Node("inner", "Switch", {"outer/in:1", "outer/serving:1"}, FloatT());
  b.Node("dropped", "Neg", {"inner"}, FloatT());
  b.Node("kept", "Relu", {"inner:1"}, FloatT());
  b.Node("inner/merge", "Merge", {"dropped", "kept"},
         FloatT({{"N", IntAttr(2)}}));
  b.Node("plain", "Identity", {"outer/in"}, FloatT());
  b.Node("out", "Merge", {"plain", "inner/merge"}, FloatT({{"N", IntAttr(2)}}));
  Graph graph = b.Build();
  MustApply(&graph, "fold_placeholder(name=keras_learning_phase)", "in,other",
            "out");
  EXPECT_EQ(Show(graph, "kept"), "Relu(outer/in:1)");
  EXPECT_EQ(Show(graph, "out"), "Merge(plain, kept)");
  EXPECT_EQ(Show(graph, "dropped"), "none");
}

TEST(FoldPlaceholderTest, KeepsNamesAndOrderThatSomethingKnows) {
  GraphBuilder b = Model();
  b.Node("which", "Identity", {"merge:1"},
         {{"T", TypeAttr(tensorflow::DT_INT32)}});
  b.Node("late", "Neg", {"in", "^merge"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "fold_placeholder(name=keras_learning_phase, value=1)",
            "in", "out,which,late,merge");
  EXPECT_EQ(Show(graph, "merge"), "Identity(train)");
  EXPECT_EQ(Show(graph, "late"), "Neg(in, ^merge)");
  EXPECT_EQ(Show(graph, "which"), "Identity(merge/value_index)");
  EXPECT_EQ(Show(graph, "merge/value_index"), "Const(^merge)");
}

TEST(FoldPlaceholderTest, LeavesALoopThatIsNeverEnteredOut) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  LearningPhase(&b);
  b.Node("gate", "Switch", {"in", kLearning}, FloatT());
  const Attrs frame = FloatT({{"frame_name", StringAttr("loop")}});
  b.Node("enter", "Enter", {"gate:1"}, frame);
  b.Node("head", "Merge", {"enter", "next"}, FloatT({{"N", IntAttr(2)}}));
  b.Node("less", "Less", {"head", "head"}, FloatT());
  b.Node("cond", "LoopCond", {"less"});
  b.Node("turn", "Switch", {"head", "cond"}, FloatT());
  b.Node("next", "NextIteration", {"turn:1"}, FloatT());
  b.Node("exit", "Exit", {"turn"}, FloatT());
  b.Node("straight", "Neg", {"gate"}, FloatT());
  b.Node("out", "Merge", {"straight", "exit"}, FloatT({{"N", IntAttr(2)}}));
  Graph graph = b.Build();
  MustApply(&graph, "fold_placeholder(name=keras_learning_phase)", "in", "out");
  EXPECT_THAT(SortedNames(graph), ElementsAre("in", "out", "straight"));
}

TEST(FoldPlaceholderTest, FoldsNumbersListsAndTensorsInTheMiddle) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  b.Placeholder("keep_prob", {});
  b.Placeholder("mean", {-1});
  b.Node("divided", "RealDiv", {"in", "keep_prob"}, FloatT());
  b.Node("sum", "Add", {"divided", "mean"}, FloatT());
  b.Node("factor", "Neg", {"mean"}, FloatT());
  b.Node("out", "Mul", {"sum", "factor"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph,
            "fold_placeholder(name=keep_prob, value=0.5, name=mean, "
            "value=\"1,2,3,4\", name=\"factor:0\", value=3, shape=4)",
            "in", "out");
  EXPECT_THAT(FloatsOf(graph, "keep_prob"), ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_THAT(FloatsOf(graph, "mean"), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(Show(graph, "out"), "Mul(sum, factor/folded)");
  EXPECT_EQ(Show(graph, "factor"), "none");
}

TEST(FoldPlaceholderTest, CutsADeclaredInputOffAndSaysSo) {
  Graph graph = Model().Build();
  const TransformReport report =
      MustApply(&graph, "fold_placeholder(name=keras_learning_phase)",
                "in,keras_learning_phase", "out");
  EXPECT_EQ(Show(graph, "out"), "Relu(serve)");
  EXPECT_EQ(Show(graph, kLearning), "PlaceholderWithDefault(learning/default)");
  EXPECT_THAT(report.warnings,
              ElementsAre(HasSubstr("'keras_learning_phase' has a fixed")));
}

TEST(FoldPlaceholderTest, RefusesAnOutputThatIsNeverComputed) {
  Graph graph = Model().Build();
  EXPECT_THAT(
      Apply(&graph, "fold_placeholder(name=keras_learning_phase, value=false)",
            "in", "out,train")
          .status()
          .message(),
      HasSubstr("the output 'train' is never computed"));
}

TEST(FoldPlaceholderTest, RefusesWhatItCannotRead) {
  const auto message = [](const std::string& arguments) {
    Graph graph = Model().Build();
    return std::string(
        Apply(&graph, "fold_placeholder(" + arguments + ")", "in", "out")
            .status()
            .message());
  };
  EXPECT_THAT(message("name=keras_learning_phase, value=perhaps"),
              HasSubstr("'perhaps' is no value of type bool"));
  EXPECT_THAT(message("name=nowhere, value=1"), HasSubstr("'nowhere'"));
  EXPECT_THAT(message("name=a, name=b, value=1"),
              HasSubstr("'name' is given 2 times and 'value' 1"));
  EXPECT_THAT(message("name=in, value=\"1,2\""),
              HasSubstr("2 values for the 4 elements"));
  EXPECT_THAT(message("name=merge, value=1"),
              HasSubstr("it depends on a condition or a loop"));
}

}  // namespace
}  // namespace optfarm::transforms::testing
