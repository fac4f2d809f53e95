#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::HasSubstr;

Attrs HandleT() { return {{"T", TypeAttr(tensorflow::DT_RESOURCE)}}; }

tensorflow::DataType TypeOf(const Graph& graph, const std::string& node) {
  return graph.node(graph.Find(node)).FindAttr("T")->type();
}

TEST(BackportTensorArrayV3Test, RenamesOpsAndReplacesTheFlow) {
  GraphBuilder b;
  b.Ints("size", {}, {2});
  b.Ints("index", {}, {0});
  b.Placeholder("x", {2});
  b.Node("array", "TensorArrayV3", {"size"},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)},
          {"identical_element_shapes", BoolAttr(true)}});
  b.Node("write", "TensorArrayWriteV3", {"array", "index", "x", "array:1"},
         FloatT());
  b.Node("grad", "TensorArrayGradV3", {"array", "write"},
         {{"source", StringAttr("gradients")}});
  b.Node("grad_flow", "Identity", {"grad:1"}, FloatT());
  b.Node("out", "TensorArrayReadV3", {"array", "index", "write"},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "backport_tensor_array_v3", "x", "out");
  EXPECT_EQ(report.nodes_changed, 4);
  EXPECT_EQ(Show(graph, "array"), "TensorArrayV2(size)");
  EXPECT_EQ(
      graph.node(graph.Find("array")).FindAttr("identical_element_shapes"),
      nullptr);
  EXPECT_EQ(Show(graph, "write"),
            "TensorArrayWriteV2(array, index, x, array/replacement_flow_node)");
  EXPECT_EQ(FloatsOf(graph, "array/replacement_flow_node"),
            std::vector<float>{1});
  EXPECT_EQ(Show(graph, "grad"), "TensorArrayGradV2(array, write)");
  EXPECT_EQ(Show(graph, "grad_flow"), "Identity(grad/replacement_flow_node)");
  EXPECT_EQ(Show(graph, "out"), "TensorArrayReadV2(array, index, write)");
}

TEST(BackportTensorArrayV3Test, FollowsHandlesIntoLoopsAndBranches) {
  GraphBuilder b;
  b.Ints("size", {}, {2});
  b.Placeholder("is_on", {}, tensorflow::DT_BOOL);
  b.Node("array", "TensorArrayV3", {"size"},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  Attrs frame = HandleT();
  frame["frame_name"] = StringAttr("while");
  b.Node("enter", "Enter", {"array"}, frame);
  b.Node("inside", "Identity", {"enter"}, HandleT());
  b.Node("exit", "Exit", {"inside"}, HandleT());
  b.Node("switch", "Switch", {"exit", "is_on"}, HandleT());
  b.Node("other", "VarHandleOp", {},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)},
          {"shape", tensorflow::AttrValue()}});
  b.mutable_def()->mutable_node(7)->mutable_attr()->at("shape").mutable_shape();
  b.Node("untouched", "Identity", {"other"}, HandleT());
  b.Node("close", "TensorArrayCloseV3", {"switch:1"});
  Graph graph = b.Build();
  MustApply(&graph, "backport_tensor_array_v3", "is_on", "close");
  for (const char* node : {"enter", "inside", "exit", "switch"}) {
    EXPECT_EQ(TypeOf(graph, node), tensorflow::DT_STRING) << node;
  }
  EXPECT_EQ(TypeOf(graph, "untouched"), tensorflow::DT_RESOURCE);
}

TEST(BackportTensorArrayV3Test, AFlowInsideALoopIsMadeInsideTheLoop) {
  GraphBuilder b;
  b.Ints("size", {}, {2});
  Attrs frame = {{"T", TypeAttr(tensorflow::DT_INT32)},
                 {"frame_name", StringAttr("while")}};
  b.Node("enter", "Enter", {"size"}, frame);
  b.Node("array", "TensorArrayV3", {"enter"},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  b.Node("count", "TensorArraySizeV3", {"array", "array:1"});
  b.Node("out", "Exit", {"count"}, {{"T", TypeAttr(tensorflow::DT_INT32)}});
  Graph graph = b.Build();
  MustApply(&graph, "backport_tensor_array_v3", "", "out");
  EXPECT_EQ(Show(graph, "array/replacement_flow_node"), "Const(^array)");
}

TEST(BackportTensorArrayV3Test, RefusesToRemoveAnOutputOfTheGraph) {
  GraphBuilder b;
  b.Ints("size", {}, {2});
  b.Node("array", "TensorArrayV3", {"size"},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}});
  Graph graph = b.Build();
  EXPECT_THAT(Apply(&graph, "backport_tensor_array_v3", "", "array:1"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("'array:1' is an input or output")));
}

}  // namespace
}  // namespace optfarm::transforms::testing
