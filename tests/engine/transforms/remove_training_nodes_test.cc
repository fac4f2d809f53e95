#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRemove[] = "remove_training_nodes";

Attrs BoolT() { return {{"T", TypeAttr(tensorflow::DT_BOOL)}}; }

// x / keep * floor(keep + uniform), as TensorFlow 1.4 writes it.
void Dropout(GraphBuilder* b, const std::string& x, bool is_scaled = true) {
  b->Ints("drop/shape", {1}, {4});
  b->Node("drop/uniform", "RandomUniform", {"drop/shape"},
          {{"T", TypeAttr(tensorflow::DT_INT32)},
           {"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  b->Floats("drop/range", {}, {1});
  b->Node("drop/mul", "Mul", {"drop/uniform", "drop/range"}, FloatT());
  b->Floats("drop/min", {}, {0});
  b->Node("drop/random", "Add", {"drop/mul", "drop/min"}, FloatT());
  b->Node("drop/add", "Add", {"keep_prob", "drop/random"}, FloatT());
  b->Node("drop/floor", "Floor", {"drop/add"}, FloatT());
  b->Node("drop/div", "RealDiv", {x, "keep_prob"}, FloatT());
  b->Node("drop", "Mul", {is_scaled ? "drop/div" : x, "drop/floor"}, FloatT());
}

TEST(RemoveTrainingNodesTest, RemovesWhatOnlyHandsOn) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  b.Node("a", "Identity", {"in"}, FloatT());
  b.Node("b", "StopGradient", {"a"}, FloatT());
  b.Node("c", "CheckNumerics", {"b"}, FloatT({{"message", StringAttr("m")}}));
  b.Node("shown", "Neg", {"in"}, FloatT());
  tensorflow::AttrValue types;
  types.mutable_list()->add_type(tensorflow::DT_FLOAT);
  b.Node("d", "Print", {"c", "shown"}, FloatT({{"U", types}}));
  tensorflow::AttrValue two;
  two.mutable_list()->add_type(tensorflow::DT_FLOAT);
  two.mutable_list()->add_type(tensorflow::DT_FLOAT);
  b.Node("e", "IdentityN", {"d", "in"}, {{"T", two}});
  b.Node("f", "PreventGradient", {"e:1"}, FloatT());
  tensorflow::NodeDef& out = b.Node("out", "Sub", {"e", "f"}, FloatT());
  (*out.mutable_attr())["_class"].mutable_list()->add_s("loc:@c");
  (*out.mutable_attr())["_class"].mutable_list()->add_s("loc:@in");
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, kRemove, "in", "out").nodes_changed, 7);
  EXPECT_THAT(SortedNames(graph), ElementsAre("in", "out"));
  EXPECT_EQ(Show(graph, "out"), "Sub(in, in)");
  EXPECT_THAT(graph.node(graph.Find("out")).FindAttr("_class")->list().s(),
              ElementsAre("loc:@in"));
}

TEST(RemoveTrainingNodesTest, RemovesDropoutWithItsRandomNumbers) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  b.Placeholder("keep_prob", {});
  Dropout(&b, "in");
  b.Node("out", "Relu", {"drop"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, kRemove, "in", "out");
  EXPECT_THAT(SortedNames(graph), ElementsAre("in", "out"));
  EXPECT_EQ(Show(graph, "out"), "Relu(in)");
}

TEST(RemoveTrainingNodesTest, KeepsTheNameOfADropoutThatIsAnOutput) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  b.Placeholder("keep_prob", {});
  Dropout(&b, "in");
  Graph graph = b.Build();
  MustApply(&graph, kRemove, "in", "drop");
  EXPECT_EQ(Show(graph, "drop"), "Identity(in)");
}

TEST(RemoveTrainingNodesTest, RemovesDropoutByRate) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  b.Floats("rate", {}, {0.2f});
  b.Floats("scale", {}, {1.25f});
  b.Ints("shape", {1}, {4});
  b.Node("uniform", "RandomUniform", {"shape"},
         {{"T", TypeAttr(tensorflow::DT_INT32)},
          {"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  b.Node("keep", "GreaterEqual", {"uniform", "rate"}, FloatT());
  b.Node("mask", "Cast", {"keep"},
         {{"SrcT", TypeAttr(tensorflow::DT_BOOL)},
          {"DstT", TypeAttr(tensorflow::DT_FLOAT)}});
  b.Node("scaled", "Mul", {"in", "scale"}, FloatT());
  b.Node("drop", "Mul", {"scaled", "mask"}, FloatT());
  b.Node("out", "Relu", {"drop"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "remove_training_nodes(op=dropout)", "in", "out");
  EXPECT_EQ(Show(graph, "out"), "Relu(in)");
}

TEST(RemoveTrainingNodesTest, LeavesAMaskThatIsNotMadeUpFor) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  b.Placeholder("keep_prob", {});
  Dropout(&b, "in", false);
  b.Node("out", "Relu", {"drop"}, FloatT());
  Graph graph = b.Build();
  EXPECT_THAT(Skipped(MustApply(&graph, kRemove, "in", "out")),
              ElementsAre(HasSubstr("drop: a random mask that no division")));
}

// pick ? in * 2 : -in, with all that tf.cond puts around it.
GraphBuilder Condition() {
  GraphBuilder b;
  b.Placeholder("in", {4});
  b.Placeholder("pick", {}, tensorflow::DT_BOOL);
  b.Node("switch", "Switch", {"pick", "pick"}, BoolT());
  b.Node("switch_t", "Identity", {"switch:1"}, BoolT());
  b.Node("pred", "Identity", {"pick"}, BoolT());
  b.Node("t/in", "Switch", {"in", "pred"}, FloatT());
  b.Floats("t/two", {}, {2});
  b.mutable_def()
      ->mutable_node(b.def().node_size() - 1)
      ->add_input("^switch_t");
  b.Node("t/handed", "Identity", {"t/in:1"}, FloatT());
  b.Node("t/mul", "Mul", {"t/handed", "t/two"}, FloatT());
  b.Node("f/in", "Switch", {"in", "pred"}, FloatT());
  b.Node("f/handed", "Identity", {"f/in"}, FloatT());
  b.Node("merge", "Merge", {"f/handed", "t/mul"}, FloatT({{"N", IntAttr(2)}}));
  b.Node("out", "Relu", {"merge"}, FloatT());
  return b;
}

TEST(RemoveTrainingNodesTest, KeepsWhatTellsTheBranch) {
  Graph graph = Condition().Build();
  const TransformReport report = MustApply(&graph, kRemove, "in,pick", "out");
  EXPECT_EQ(Show(graph, "switch_t"), "Identity(switch:1)");
  EXPECT_EQ(Show(graph, "t/two"), "Const(^switch_t)");
  EXPECT_EQ(Show(graph, "t/mul"), "Mul(t/in:1, t/two)");
  EXPECT_EQ(Show(graph, "merge"), "Merge(f/in, t/mul)");
  EXPECT_THAT(Skipped(report),
              ElementsAre("switch_t: it tells 't/two' which branch of a "
                          "condition was taken"));
}

// Assert of tf.Assert: in a branch of its own, which everything waits for.
void AssertPositive(GraphBuilder* b) {
  b->Floats("zero", {}, {0});
  b->Ints("axes", {1}, {0});
  b->Node("greater", "Greater", {"in", "zero"}, FloatT());
  b->Node("all", "All", {"greater", "axes"});
  b->Node("g/switch", "Switch", {"all", "all"}, BoolT());
  b->Node("g/t", "Identity", {"g/switch:1"}, BoolT());
  b->Node("g/f", "Identity", {"g/switch"}, BoolT());
  b->Node("g/nothing", "NoOp", {"^g/t"});
  b->Node("g/passed", "Identity", {"g/t", "^g/nothing"}, BoolT());
  b->Node("g/data", "Switch", {"in", "all"}, FloatT());
  b->Node("g/all", "Switch", {"all", "all"}, BoolT());
  tensorflow::AttrValue types;
  types.mutable_list()->add_type(tensorflow::DT_FLOAT);
  b->Node("g/Assert", "Assert", {"g/all", "g/data", "^g/f"}, {{"T", types}});
  b->Node("g/failed", "Identity", {"g/f", "^g/Assert"}, BoolT());
  b->Node("g/merge", "Merge", {"g/failed", "g/passed"},
          {{"T", TypeAttr(tensorflow::DT_BOOL)}, {"N", IntAttr(2)}});
}

TEST(RemoveTrainingNodesTest, RemovesAnAssertWithTheConditionAroundIt) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  AssertPositive(&b);
  b.Node("checked", "Identity", {"in", "^g/merge"}, FloatT());
  b.Node("out", "Relu", {"checked"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report = MustApply(&graph, kRemove, "in", "out");
  EXPECT_THAT(SortedNames(graph), ElementsAre("in", "out"));
  EXPECT_EQ(Show(graph, "out"), "Relu(in)");
  EXPECT_THAT(Skipped(report), IsEmpty());
}

TEST(RemoveTrainingNodesTest, KeepsAnAssertThatAloneTellsTheBranch) {
  GraphBuilder b = Condition();
  b.Node("pivot", "Switch", {"pick", "pick"}, BoolT());
  tensorflow::AttrValue types;
  types.mutable_list()->add_type(tensorflow::DT_FLOAT);
  b.Node("t/Assert", "Assert", {"pivot:1", "in"}, {{"T", types}});
  b.Node("only_then", "NoOp", {"^t/Assert"});
  Graph graph = b.Build();
  const TransformReport report = MustApply(
      &graph, "remove_training_nodes(op=Assert)", "in,pick", "out,only_then");
  EXPECT_EQ(Show(graph, "only_then"), "NoOp(^t/Assert)");
  EXPECT_THAT(Skipped(report),
              ElementsAre(HasSubstr("t/Assert: it tells 'only_then'")));
}

TEST(RemoveTrainingNodesTest, KeepsControlEdgesToWhatHasAnEffect) {
  GraphBuilder b;
  b.Placeholder("in", {4});
  b.Placeholder("file", {}, tensorflow::DT_STRING);
  b.Node("written", "WriteFile", {"file", "file"});
  b.Node("later", "Identity", {"in", "^written"}, FloatT());
  b.Node("out", "Relu", {"later"}, FloatT());
  b.Node("last", "Neg", {"in", "^later"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, kRemove, "in,file", "out,last");
  EXPECT_EQ(Show(graph, "out"), "Relu(in, ^written)");
  EXPECT_EQ(Show(graph, "last"), "Neg(in, ^in, ^written)");
}

TEST(RemoveTrainingNodesTest, KeepsWhatAMergeMustNotWaitFor) {
  GraphBuilder b = Condition();
  b.Placeholder("file", {}, tensorflow::DT_STRING);
  b.Node("written", "WriteFile", {"file", "file"});
  for (tensorflow::NodeDef& node : *b.mutable_def()->mutable_node()) {
    if (node.name() == "f/handed") node.add_input("^written");
  }
  Graph graph = b.Build();
  MustApply(&graph, kRemove, "in,pick,file", "out");
  EXPECT_EQ(Show(graph, "f/handed"), "Identity(f/in, ^written)");
}

TEST(RemoveTrainingNodesTest, RemovesFakeQuantsOnlyWhenAskedTo) {
  for (const bool asked : {false, true}) {
    GraphBuilder b;
    b.Placeholder("in", {4});
    b.Floats("min", {}, {-1});
    b.Floats("max", {}, {1});
    b.Node("fake", "FakeQuantWithMinMaxVars", {"in", "min", "max"});
    b.Node("out", "Relu", {"fake"}, FloatT());
    Graph graph = b.Build();
    MustApply(&graph,
              asked ? "remove_training_nodes(fake_quant=true)" : kRemove, "in",
              "out");
    EXPECT_EQ(Show(graph, "out"), asked ? "Relu(in)" : "Relu(fake)");
    EXPECT_EQ(graph.node_count(), asked ? 2 : 5);
  }
}

TEST(RemoveTrainingNodesTest, SaysWhichOpsItKnows) {
  Graph graph = Condition().Build();
  EXPECT_THAT(Apply(&graph, "remove_training_nodes(op=Relu)", "in", "out")
                  .status()
                  .message(),
              HasSubstr("it may be Identity, IdentityN"));
}

}  // namespace
}  // namespace optfarm::transforms::testing
