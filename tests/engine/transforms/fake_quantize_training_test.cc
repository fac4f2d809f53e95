// fake_quantize_training, and remove_ema, which takes a part of it away again
// when training is over.

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kX[] = "x/FakeQuantWithMinMaxVars";

// relu6(x * w) * v, with variables.
GraphBuilder TrainingGraph() {
  GraphBuilder b;
  tensorflow::AttrValue shape;
  shape.mutable_shape()->add_dim()->set_size(2);
  shape.mutable_shape()->add_dim()->set_size(2);
  b.Placeholder("x", {2, 2});
  for (const char* name : {"w", "v"}) {
    b.Node(name, "VariableV2", {},
           {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}, {"shape", shape}});
  }
  b.Node("w/read", "Identity", {"w"}, FloatT());
  b.Node("v/read", "Identity", {"v"}, FloatT());
  b.Node("hidden", "MatMul", {"x", "w/read"}, FloatT());
  b.Node("relu6", "Relu6", {"hidden"}, FloatT());
  b.Node("out", "MatMul", {"relu6", "v/read"}, FloatT());
  b.Node("gradients/out", "MatMul", {"relu6", "out"}, FloatT());
  return b;
}

// As freezing does it: variables become constants.
void Freeze(Graph* graph) {
  for (graph::NodeId id : graph->Ids()) {
    if (graph->node(id).op() != "VariableV2") continue;
    const bool is_scalar =
        graph->node(id).FindAttr("shape")->shape().dim_size() == 0;
    graph->mutable_node(id)->mutable_def()->set_op("Const");
    SetConstValue(graph->mutable_node(id),
                  is_scalar
                      ? Tensor::Scalar<float>(graph->node(id).name().find(
                                                  "/min/") != std::string::npos
                                                  ? -1.0f
                                                  : 2.0f)
                      : Tensor::FromValues<float>({2, 2}, {1, 0, 0, 1}));
  }
}

TEST(FakeQuantizeTrainingTest, QuantizesWhatForwardProductsRead) {
  Graph graph = TrainingGraph().Build();
  const TransformReport report =
      MustApply(&graph, "fake_quantize_training", "x", "out");
  EXPECT_EQ(report.nodes_changed, 2);
  EXPECT_EQ(Show(graph, "hidden"),
            "MatMul(x/FakeQuantWithMinMaxVars, "
            "w/read/FakeQuantWithMinMaxVars)");
  EXPECT_EQ(Show(graph, kX),
            "FakeQuantWithMinMaxVars(x, x/FakeQuantWithMinMaxVars/min/Assign, "
            "x/FakeQuantWithMinMaxVars/max/Assign)");
  // The gradients see the values as they were.
  EXPECT_EQ(Show(graph, "gradients/out"), "MatMul(relu6, out)");
  // The op tells the range.
  EXPECT_EQ(FloatsOf(graph, "relu6/FakeQuantWithMinMaxVars/max"),
            std::vector<float>{6});
  const std::string min = std::string(kX) + "/min/";
  EXPECT_EQ(Show(graph, min + "Assign"),
            "Assign(" + min + "variable, " + min + "Merge)");
  EXPECT_EQ(Show(graph, min + "Merge"),
            "Merge(" + min + "Switch, " + min + "moved)");
  EXPECT_EQ(Show(graph, min + "moved"),
            "Sub(" + min + "variable, " + min + "change)");
  EXPECT_EQ(Show(graph, min + "distance"),
            "Sub(" + min + "variable, " + min + "Switch:1)");
}

TEST(FakeQuantizeTrainingTest, RangesFollowWhatIsSeen) {
  GraphBuilder b;
  b.Placeholder("x", {1, 2});
  b.Floats("w", {2, 1}, {1, 2});
  b.Node("out", "MatMul", {"x", "w"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "fake_quantize_training", "x", "out");
  tensorflow::NodeDef read;
  read.set_name("read");
  read.set_op("Identity");
  (*read.mutable_attr())["T"] = TypeAttr(tensorflow::DT_FLOAT);
  graph.Add(read, {{graph.Find(std::string(kX) + "/max/Assign"), 0}});
  const auto session =
      runtime::Session::Create(graph, graph::ParseTensorNames("x").value(),
                               graph::ParseTensorNames("out,read").value());
  OPTFARM_ASSERT_OK(session);
  const auto run = [&](float greatest) {
    const auto outputs =
        (*session)->Run({Tensor::FromValues<float>({1, 2}, {-1, greatest})});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? (*outputs)[1].flat<float>()[0] : 0.0f;
  };
  // The first value as it is, then a thousandth of the way.
  EXPECT_EQ(run(3), 3);
  EXPECT_NEAR(run(5), 3.002f, 1e-5f);
  EXPECT_NEAR(run(5), 3.003998f, 1e-5f);
}

TEST(FakeQuantizeTrainingTest, ATensorThatIsReadTwiceIsQuantizedOnce) {
  GraphBuilder b;
  b.Placeholder("x", {2, 2});
  b.Node("out", "MatMul", {"x", "x"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "fake_quantize_training", "x", "out");
  EXPECT_EQ(Show(graph, "out"), std::string("MatMul(") + kX + ", " + kX + ")");
  const int nodes = graph.node_count();
  // A second time nothing is left to do.
  MustApply(&graph, "fake_quantize_training", "x", "out");
  EXPECT_EQ(graph.node_count(), nodes);
}

GraphBuilder WithSaver(bool restores) {
  GraphBuilder b = TrainingGraph();
  const auto strings = [&](const std::string& name, const std::string& text) {
    b.Ints(name, {2}, {});
    auto* node = &*b.mutable_def()->mutable_node()->rbegin();
    (*node->mutable_attr())["dtype"] = TypeAttr(tensorflow::DT_STRING);
    auto* value = (*node->mutable_attr())["value"].mutable_tensor();
    value->set_dtype(tensorflow::DT_STRING);
    for (char c : text) {
      value->add_string_val(c == '-' ? "" : std::string(1, c));
    }
  };
  tensorflow::AttrValue types;
  types.mutable_list()->add_type(tensorflow::DT_FLOAT);
  types.mutable_list()->add_type(tensorflow::DT_FLOAT);
  b.Placeholder("save/file", {}, tensorflow::DT_STRING);
  strings("save/names", "wv");
  strings("save/slices", "--");
  b.Node("save/SaveV2", "SaveV2",
         {"save/file", "save/names", "save/slices", "w", "v"},
         {{"dtypes", types}});
  if (!restores) return b;
  b.Node("save/RestoreV2", "RestoreV2",
         {"save/file", "save/names", "save/slices"}, {{"dtypes", types}});
  b.Node("save/Assign", "Assign", {"w", "save/RestoreV2"}, FloatT());
  b.Node("save/Assign_1", "Assign", {"v", "save/RestoreV2:1"}, FloatT());
  b.Node("save/restore_all", "NoOp", {"^save/Assign", "^save/Assign_1"});
  return b;
}

TEST(FakeQuantizeTrainingTest, TheSaverSavesTheRangesToo) {
  Graph graph = WithSaver(true).Build();
  const TransformReport report =
      MustApply(&graph, "fake_quantize_training", "x", "out");
  EXPECT_THAT(report.warnings, IsEmpty());
  const std::string min = std::string(kX) + "/min/variable";
  EXPECT_THAT(Show(graph, "save/SaveV2"), HasSubstr(", w, v, " + min + ", "));
  // The restoring node still reads the two names.
  EXPECT_THAT(Show(graph, "save/RestoreV2"),
              HasSubstr("save/file, save/names, save/slices"));
  EXPECT_EQ(graph.node(graph.Find("save/names_1"))
                .FindAttr("value")
                ->tensor()
                .string_val_size(),
            8);
  EXPECT_EQ(Show(graph, min + "/restore"),
            "Assign(" + min + ", save/RestoreV2_1)");
  EXPECT_THAT(Show(graph, "save/restore_all"),
              HasSubstr("^" + min + "/restore"));
}

TEST(FakeQuantizeTrainingTest, WarnsOfASaverThatItDoesNotUnderstand) {
  Graph graph = WithSaver(false).Build();
  EXPECT_THAT(
      MustApply(&graph, "fake_quantize_training", "x", "out").warnings,
      ElementsAre(HasSubstr("could not be added to the saver 'save/SaveV2'")));
}

TEST(RemoveEmaTest, ReadsFrozenRangesDirectly) {
  Graph graph = TrainingGraph().Build();
  MustApply(&graph, "fake_quantize_training", "x", "out");
  Freeze(&graph);
  const TransformReport report =
      MustApply(&graph, "remove_ema strip_unused_nodes remove_ema", "x", "out");
  EXPECT_THAT(report.skipped, IsEmpty());
  EXPECT_EQ(Show(graph, kX), std::string("FakeQuantWithMinMaxVars(x, ") + kX +
                                 "/min/variable, " + kX + "/max/variable)");
  EXPECT_THAT(
      SortedNames(graph),
      ElementsAre("hidden", "out", "relu6", "relu6/FakeQuantWithMinMaxVars",
                  "relu6/FakeQuantWithMinMaxVars/max",
                  "relu6/FakeQuantWithMinMaxVars/min", "v", "v/read",
                  "v/read/FakeQuantWithMinMaxVars",
                  "v/read/FakeQuantWithMinMaxVars/max/variable",
                  "v/read/FakeQuantWithMinMaxVars/min/variable", "w", "w/read",
                  "w/read/FakeQuantWithMinMaxVars",
                  "w/read/FakeQuantWithMinMaxVars/max/variable",
                  "w/read/FakeQuantWithMinMaxVars/min/variable", "x", kX,
                  std::string(kX) + "/max/variable",
                  std::string(kX) + "/min/variable"));
  // Rounded to 255 steps of 3/255 each.
  EXPECT_THAT(
      testing::Run(graph, "x", Tensor::FromValues<float>({2, 2}, {1, -5, 0, 5}),
                   "hidden"),
      AllNear(std::vector<float>{1, -1, 0, 2}, 0.02f));
}

TEST(RemoveEmaTest, LeavesRangesThatAreStillTrained) {
  Graph graph = TrainingGraph().Build();
  const TransformReport report =
      MustApply(&graph, "fake_quantize_training remove_ema", "x", "out");
  EXPECT_EQ(report.nodes_changed, 0);
  EXPECT_THAT(Skipped(report), Contains(std::string(kX) +
                                        ": its range is no moving average of a "
                                        "frozen variable; freeze the graph "
                                        "first"));
}

}  // namespace
}  // namespace optfarm::transforms::testing
