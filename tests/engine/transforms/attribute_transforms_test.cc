// The transforms that change nodes one by one: attributes, ops, names, devices.

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::HasSubstr;

Graph Small() {
  GraphBuilder b;
  b.Placeholder("x", {2, 2});
  b.Node("relu", "Relu", {"x"}, FloatT({{"extra", IntAttr(1)}}));
  b.Node("out", "MatMul", {"relu", "x", "^relu"},
         FloatT({{"extra", IntAttr(2)}}))
      .set_device("/gpu:0");
  return b.Build();
}

const tensorflow::AttrValue* Attr(const Graph& graph, const std::string& node,
                                  const std::string& name) {
  return graph.node(graph.Find(node)).FindAttr(name);
}

TEST(AddDefaultAttributesTest, AddsWhatIsMissing) {
  Graph graph = Small();
  MustApply(&graph, "add_default_attributes", "x", "out");
  ASSERT_NE(Attr(graph, "out", "transpose_b"), nullptr);
  EXPECT_FALSE(Attr(graph, "out", "transpose_b")->b());
  EXPECT_EQ(Attr(graph, "out", "extra")->i(), 2);
}

TEST(AddDefaultAttributesTest, KnowsTheGraphsFunctionsAndNoOtherOps) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Node("out", "MyFunction", {"x"});
  Graph graph = b.Build();
  EXPECT_THAT(Apply(&graph, "add_default_attributes", "x", "out"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("Op type not registered 'MyFunction'")));
  auto* signature =
      b.mutable_def()->mutable_library()->add_function()->mutable_signature();
  signature->set_name("MyFunction");
  signature->add_input_arg()->set_name("a");
  signature->mutable_input_arg(0)->set_type(tensorflow::DT_FLOAT);
  graph = b.Build();
  MustApply(&graph, "add_default_attributes", "x", "out");
}

TEST(RemoveDefaultAttributesTest, UndoesAddingThem) {
  Graph graph = Small();
  const std::string before = graph.ToDef().ShortDebugString();
  MustApply(&graph, "add_default_attributes", "x", "out");
  ASSERT_NE(Attr(graph, "out", "transpose_b"), nullptr);
  MustApply(&graph, "remove_default_attributes", "x", "out");
  EXPECT_EQ(graph.ToDef().ShortDebugString(), before);
}

TEST(RemoveDefaultAttributesTest, KeepsWhatDiffers) {
  GraphBuilder b;
  b.Placeholder("x", {2, 2});
  b.Node("out", "MatMul", {"x", "x"},
         FloatT({{"transpose_a", BoolAttr(false)},
                 {"transpose_b", BoolAttr(true)}}));
  Graph graph = b.Build();
  MustApply(&graph, "remove_default_attributes", "x", "out");
  EXPECT_EQ(Attr(graph, "out", "transpose_a"), nullptr);
  ASSERT_NE(Attr(graph, "out", "transpose_b"), nullptr);
  EXPECT_TRUE(Attr(graph, "out", "transpose_b")->b());
}

TEST(RemoveAttributeTest, RemovesFromTheOpsItIsTold) {
  Graph graph = Small();
  MustApply(&graph, "remove_attribute(attribute_name=extra, op_name=Relu)", "x",
            "out");
  EXPECT_EQ(Attr(graph, "relu", "extra"), nullptr);
  EXPECT_NE(Attr(graph, "out", "extra"), nullptr);
  MustApply(&graph, "remove_attribute(attribute_name=extra, op_name=\"*\")",
            "x", "out");
  EXPECT_EQ(Attr(graph, "out", "extra"), nullptr);
}

TEST(RenameAttributeTest, KeepsTheValue) {
  Graph graph = Small();
  MustApply(&graph,
            "rename_attribute(old_attribute_name=extra, "
            "new_attribute_name=other, op_name=MatMul)",
            "x", "out");
  EXPECT_EQ(Attr(graph, "out", "extra"), nullptr);
  EXPECT_EQ(Attr(graph, "out", "other")->i(), 2);
  EXPECT_EQ(Attr(graph, "relu", "extra")->i(), 1);
}

TEST(RenameOpTest, KeepsInputs) {
  Graph graph = Small();
  MustApply(&graph, "rename_op(old_op_name=Relu, new_op_name=Relu6)", "x",
            "out");
  EXPECT_EQ(Show(graph, "relu"), "Relu6(x)");
}

TEST(RenameNodeTest, FollowsEdges) {
  Graph graph = Small();
  MustApply(&graph, "rename_node(old_node_name=relu, new_node_name=act)", "x",
            "out");
  EXPECT_EQ(Show(graph, "out"), "MatMul(act, x, ^act)");
  EXPECT_THAT(
      Apply(&graph, "rename_node(old_node_name=act, new_node_name=x)", "x",
            "out"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in use")));
  EXPECT_THAT(Apply(&graph, "rename_node(old_node_name=axt, new_node_name=b)",
                    "x", "out"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'act'")));
}

TEST(DeviceTest, SetsAndRemoves) {
  Graph graph = Small();
  MustApply(&graph, "set_device(device=\"/cpu:0\", if_default=true)", "x",
            "out");
  EXPECT_EQ(graph.node(graph.Find("relu")).device(), "/cpu:0");
  EXPECT_EQ(graph.node(graph.Find("out")).device(), "/gpu:0");
  MustApply(&graph, "set_device(device=\"/cpu:1\")", "x", "out");
  EXPECT_EQ(graph.node(graph.Find("out")).device(), "/cpu:1");
  MustApply(&graph, "remove_device", "x", "out");
  EXPECT_EQ(graph.node(graph.Find("out")).device(), "");
}

TEST(RemoveControlDependenciesTest, RemovesAll) {
  Graph graph = Small();
  MustApply(&graph, "remove_control_dependencies", "x", "out");
  EXPECT_EQ(Show(graph, "out"), "MatMul(relu, x)");
}

TEST(BackportConcatv2Test, MovesTheAxisToTheFront) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Ints("axis", {}, {0});
  b.Node("out", "ConcatV2", {"x", "x", "axis", "^x"},
         FloatT({{"N", IntAttr(2)}, {"Tidx", TypeAttr(tensorflow::DT_INT32)}}));
  Graph graph = b.Build();
  MustApply(&graph, "backport_concatv2", "x", "out");
  EXPECT_EQ(Show(graph, "out"), "Concat(axis, x, x, ^x)");
  EXPECT_EQ(Attr(graph, "out", "Tidx"), nullptr);
  EXPECT_NE(Attr(graph, "out", "N"), nullptr);
}

TEST(BackportConcatv2Test, LeavesAnAxisThatConcatDoesNotTake) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Placeholder("axis", {}, tensorflow::DT_INT64);
  b.Node("out", "ConcatV2", {"x", "x", "axis"},
         FloatT({{"N", IntAttr(2)}, {"Tidx", TypeAttr(tensorflow::DT_INT64)}}));
  Graph graph = b.Build();
  EXPECT_THAT(Skipped(MustApply(&graph, "backport_concatv2", "x,axis", "out")),
              ::testing::ElementsAre(HasSubstr("not int32")));
  EXPECT_EQ(Show(graph, "out"), "ConcatV2(x, x, axis)");
}

}  // namespace
}  // namespace optfarm::transforms::testing
