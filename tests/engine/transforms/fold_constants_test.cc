#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// out = x * (2 + 3), beside a node that nothing needs.
GraphBuilder Product() {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Floats("two", {}, {2});
  b.Floats("three", {}, {3});
  b.Node("sum", "Add", {"two", "three"}, FloatT());
  b.Node("out", "Mul", {"x", "sum"}, FloatT());
  b.Node("rest", "Relu", {"out"}, FloatT());
  return b;
}

TEST(FoldConstantsTest, EvaluatesWhatDependsOnConstantsAlone) {
  Graph graph = Product().Build();
  MustApply(&graph, "fold_constants", "x", "out");
  EXPECT_THAT(Names(graph), ElementsAre("out", "sum/_0__cf__0", "x"));
  EXPECT_EQ(Show(graph, "out"), "Mul(x, sum/_0__cf__0)");
  EXPECT_THAT(FloatsOf(graph, "sum/_0__cf__0"), ElementsAre(5));
}

TEST(FoldConstantsTest, CountsOnThroughOneRunAndAnewInTheNext) {
  for (int run = 0; run < 2; ++run) {
    GraphBuilder b = Product();
    b.Floats("four", {}, {4});
    b.Node("keep", "Add", {"four", "four"}, FloatT());
    b.Node("out2", "Mul", {"out", "keep"}, FloatT());
    Graph graph = b.Build();
    MustApply(&graph, "fold_constants(exclude_node=keep) fold_constants", "x",
              "out2");
    EXPECT_NE(graph.Find("sum/_0__cf__0"), graph::kNoNode);
    EXPECT_NE(graph.Find("keep/_0__cf__1"), graph::kNoNode);
  }
}

TEST(FoldConstantsTest, LeavesWhatItIsTold) {
  for (const char* step :
       {"fold_constants(exclude_op=Add)", "fold_constants(exclude_node=sum)",
        "fold_constants(max_constant_size_in_bytes=3)"}) {
    Graph graph = Product().Build();
    MustApply(&graph, step, "x", "out");
    EXPECT_EQ(Show(graph, "out"), "Mul(x, sum)") << step;
  }
}

TEST(FoldConstantsTest, DoesNotFoldWhatIsFed) {
  Graph graph = Product().Build();
  MustApply(&graph, "fold_constants", "x,sum", "out");
  EXPECT_EQ(Show(graph, "out"), "Mul(x, sum)");
}

TEST(FoldConstantsTest, KeepsAConstantOutputUnderItsName) {
  Graph graph = Product().Build();
  MustApply(&graph, "fold_constants", "x", "out,sum");
  EXPECT_EQ(Show(graph, "sum"), "Add(two, three)");
  EXPECT_EQ(Show(graph, "out"), "Mul(x, sum/_0__cf__0)");
}

TEST(FoldConstantsTest, TransfersControlEdges) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Placeholder("first", {});
  b.Floats("two", {}, {2});
  b.mutable_def()->mutable_node(2)->add_input("^first");
  b.Node("twice", "Add", {"two", "two"}, FloatT());
  b.Node("more", "Add", {"twice", "two"}, FloatT());
  b.Node("out", "Mul", {"x", "more"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "fold_constants", "x,first", "out");
  EXPECT_EQ(Show(graph, "more/_0__cf__0"), "Const(^first)");
}

TEST(FoldConstantsTest, KnowsStaticShapes) {
  GraphBuilder b;
  b.Placeholder("x", {2, 3});
  b.Placeholder("y", {-1, 3});
  for (const char* op : {"Shape", "Rank", "Size"}) {
    b.Node(std::string("x") + op, op, {"x"}, FloatT());
    b.Node(std::string("y") + op, op, {"y"}, FloatT());
  }
  b.Placeholder("p", {}, tensorflow::DT_INT32);
  const Attrs int_t = {{"T", TypeAttr(tensorflow::DT_INT32)}};
  std::vector<std::string> all;
  for (const char* name :
       {"xShape", "xRank", "xSize", "yRank", "yShape", "ySize"}) {
    b.Node(std::string("use") + name, "Add", {"p", name}, int_t);
    all.push_back(std::string("use") + name);
  }
  Graph graph = b.Build();
  MustApply(&graph, "fold_constants", "x,y,p", absl::StrJoin(all, ","));
  EXPECT_THAT(Show(graph, "usexShape"), HasSubstr("xShape/_"));
  EXPECT_THAT(Show(graph, "usexRank"), HasSubstr("xRank/_"));
  EXPECT_THAT(Show(graph, "usexSize"), HasSubstr("xSize/_"));
  EXPECT_THAT(Show(graph, "useyRank"), HasSubstr("yRank/_"));
  EXPECT_EQ(Show(graph, "useyShape"), "Add(p, yShape)");
  EXPECT_EQ(Show(graph, "useySize"), "Add(p, ySize)");
}

TEST(FoldConstantsTest, TakesShapesAsTensorFlow13Did) {
  const auto fold = [](const std::string& parameters) {
    GraphBuilder b;
    b.Placeholder("x", {-1, 3});
    b.Node("size", "Size", {"x"}, FloatT());
    b.Placeholder("p", {}, tensorflow::DT_INT32);
    b.Node("out", "Add", {"p", "size"},
           {{"T", TypeAttr(tensorflow::DT_INT32)}});
    Graph graph = b.Build();
    MustApply(&graph, absl::StrCat("fold_constants(", parameters, ")"), "x,p",
              "out");
    return Show(graph, "out");
  };
  EXPECT_EQ(fold(""), "Add(p, size)");
  EXPECT_THAT(fold("type=float, shape=\"2,3\""), HasSubstr("size/_0__cf__"));
  EXPECT_THAT(fold("name=x, type_for_name=float, shape_for_name=\"2,3\""),
              HasSubstr("size/_0__cf__"));
  EXPECT_EQ(fold("name=p, shape_for_name=\"2,3\""), "Add(p, size)");
  Graph graph = Product().Build();
  EXPECT_THAT(Apply(&graph, "fold_constants(name=x)", "x", "out"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("each name needs a shape")));
}

TEST(FoldConstantsTest, TurnsAnOptionalInputIntoAPlaceholder) {
  GraphBuilder b;
  b.Floats("default", {}, {1});
  tensorflow::AttrValue scalar;
  scalar.mutable_shape();
  b.Node("keep", "PlaceholderWithDefault", {"default"},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}, {"shape", scalar}});
  b.Placeholder("x", {2});
  b.Node("out", "Mul", {"x", "keep"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "fold_constants", "x,keep", "out");
  EXPECT_THAT(Names(graph), ElementsAre("out", "x", "keep"));
  EXPECT_EQ(Show(graph, "keep"), "Placeholder()");
}

TEST(FoldConstantsTest, LeavesANodeThatCannotBeEvaluated) {
  GraphBuilder b = Product();
  b.Floats("a", {2}, {1, 2});
  b.Floats("b", {3}, {1, 2, 3});
  b.Node("bad", "Add", {"a", "b"}, FloatT());
  b.Node("out2", "Mul", {"out", "bad"}, FloatT());
  Graph graph = b.Build();
  PipelineOptions options;
  options.verify = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      Apply(&graph, "fold_constants", "x", "out2", options));
  EXPECT_THAT(Skipped(report.steps[0].report), ElementsAre(HasSubstr("bad: ")));
  EXPECT_EQ(Show(graph, "out2"), "Mul(out, bad)");
  EXPECT_EQ(Show(graph, "out"), "Mul(x, sum/_0__cf__0)");
}

TEST(FoldConstantsTest, DoesNotMakeHugeTensors) {
  GraphBuilder b;
  b.Ints("dims", {3}, {1 << 20, 1 << 20, 4});
  b.Floats("zero", {}, {0});
  b.Node("huge", "Fill", {"dims", "zero"},
         FloatT({{"index_type", TypeAttr(tensorflow::DT_INT32)}}));
  b.Placeholder("x", {});
  b.Node("out", "Mul", {"x", "huge"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "fold_constants", "x", "out");
  EXPECT_EQ(Show(graph, "out"), "Mul(x, huge)");
}

TEST(FoldConstantsTest, ClearsOutputShapesAndWritesDefaults) {
  GraphBuilder b;
  b.Placeholder("x", {2, 2});
  b.Node("out", "MatMul", {"x", "x"},
         FloatT({{"_output_shapes", IntsAttr({1})}}));
  Graph graph = b.Build();
  MustApply(&graph, "fold_constants(clear_output_shapes=false)", "x", "out");
  const graph::Node& out = graph.node(graph.Find("out"));
  EXPECT_NE(out.FindAttr("_output_shapes"), nullptr);
  EXPECT_NE(out.FindAttr("transpose_a"), nullptr);
  MustApply(&graph, "fold_constants", "x", "out");
  EXPECT_EQ(out.FindAttr("_output_shapes"), nullptr);
}

TEST(FoldConstantsTest, NeedsOutputsAndDistinctInputs) {
  Graph graph = Product().Build();
  EXPECT_THAT(Apply(&graph, "fold_constants", "x", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Must specify at least one target")));
  EXPECT_THAT(Apply(&graph, "fold_constants", "x,x:0", "out"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"x\" fed more than once")));
  EXPECT_THAT(Apply(&graph, "fold_constants", "x", "x"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("x is both fed and fetched")));
}

TEST(FoldConstantsTest, ManagesAChainAsLongAsAModelCanBe) {
  GraphBuilder b;
  b.Floats("n0", {}, {1});
  constexpr int kLength = 20000;
  for (int i = 1; i <= kLength; ++i) {
    b.Node(absl::StrCat("n", i), "Neg", {absl::StrCat("n", i - 1)}, FloatT());
  }
  b.Placeholder("x", {2});
  b.Node("out", "Mul", {"x", absl::StrCat("n", kLength)}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "fold_constants", "x", "out");
  EXPECT_EQ(graph.node_count(), 3);
}

// Constants that are handed on unchanged are moved where nothing else needs
// them, and copied where something does.
TEST(FoldConstantsTest, HandsTensorsOn) {
  for (const std::string outputs : {"out", "out,w"}) {
    GraphBuilder b;
    b.Placeholder("in", {3});
    tensorflow::AttrValue value;
    value.mutable_tensor()->set_dtype(tensorflow::DT_FLOAT);
    value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(3);
    const float numbers[] = {1, 2, 3};
    value.mutable_tensor()->set_tensor_content(numbers, sizeof(numbers));
    b.Node("w", "Const", {},
           {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}, {"value", value}});
    b.Node("read", "Identity", {"w"}, FloatT());
    b.Node("again", "Identity", {"read"}, FloatT());
    b.Node("sum", "Add", {"in", "read"}, FloatT());
    b.Node("out", "Mul", {"sum", "again"}, FloatT());
    Graph graph = b.Build();
    MustApply(&graph, "fold_constants", "in", outputs);
    EXPECT_EQ(graph.Find("w") != graph::kNoNode, outputs == "out,w");
    const graph::Node& out = graph.node(graph.Find("out"));
    const graph::Node& sum = graph.node(graph.Find("sum"));
    for (const graph::NodeId id :
         {out.inputs()[1].node, sum.inputs()[1].node}) {
      EXPECT_THAT(FloatsOf(graph, graph.node(id).name()), ElementsAre(1, 2, 3));
    }
    if (outputs == "out,w") {
      EXPECT_THAT(FloatsOf(graph, "w"), ElementsAre(1, 2, 3));
    }
  }
}

}  // namespace
}  // namespace optfarm::transforms::testing
