// Models that keep state from run to run, as files without state; and what else
// TensorFlow Lite models have and ONNX spells out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/export/convert_file.h"
#include "engine/export/expose_state.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/attr.h"
#include "engine/graph/model_interface.h"
#include "onnx/onnx.pb.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::exporting {
namespace {

using ::testing::HasSubstr;
using namespace optfarm::testing;  // NOLINT: the tests' own vocabulary
using graph::Graph;

Attrs Float(const std::string& name) {
  return {{name, TypeAttr(tensorflow::DT_FLOAT)}};
}

// out = state + x, and that is the state of the next run.
Graph Counter() {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Floats("first", {2}, {3, 5});
  b.Node("variable", "VarHandleOp", {},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)},
          {"shared_name", StringAttr("sum:0")}});
  b.Node("read", "ReadVariableOrInitial", {"variable", "first"},
         Float("dtype"));
  b.Node("added", "AddV2", {"read", "x"}, FloatT());
  b.Node("store", "AssignVariableOp", {"variable", "added", "^read"},
         Float("dtype"));
  b.Node("out", "Identity", {"added", "^store"}, FloatT());
  Graph graph = b.Build();
  graph::DeclareInput("tflite", 0, "x", {},
                      graph.mutable_node(graph.Find("x"))->mutable_def());
  graph::DeclareOutput("tflite", 0, "out", {},
                       graph.mutable_node(graph.Find("out"))->mutable_def());
  return graph;
}

TEST(StateExportTest, BecomesInputsAndOutputs) {
  Graph graph = Counter();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<ExposedState> states,
                               ExposeState(&graph));
  ASSERT_EQ(states.size(), 1);
  EXPECT_EQ(states[0].input, "state_in/sum");
  EXPECT_EQ(states[0].output, "state_out/sum");
  EXPECT_EQ(states[0].initial.data<float>()[1], 5);
  EXPECT_EQ(graph.Find("variable"), graph::kNoNode);
  EXPECT_EQ(DescribeState(states),
            "state_in/sum <- state_out/sum of the run before; at first [3 5]");
  const graph::ModelInterface declared = graph::ReadModelInterface(graph);
  ASSERT_EQ(declared.inputs.size(), 2);
  EXPECT_EQ(declared.inputs[1].name, "state_in/sum");
  ASSERT_EQ(declared.outputs.size(), 2);
  EXPECT_EQ(declared.outputs[1].name, "state_out/sum");
}

TEST(StateExportTest, IsComparedOverSeveralRuns) {
  for (const ModelFormat format : {ModelFormat::kOnnx, ModelFormat::kTflite}) {
    ConvertOptions options;
    options.written.format = format;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made,
                                 ConvertGraph(Counter(), options));
    ASSERT_TRUE(made.difference.has_value()) << made.line;
    EXPECT_EQ(made.difference->elements, 8);
    EXPECT_EQ(made.difference->unequal, 0);
    EXPECT_THAT(made.line, HasSubstr("state became 1 inputs"));
    if (format != ModelFormat::kOnnx) continue;
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(made.bytes));
    ASSERT_EQ(model.metadata_props_size(), 1);
    EXPECT_THAT(model.metadata_props(0).value(), HasSubstr("state_out/sum"));
  }
}

TEST(StateExportTest, ForgettingStateIsNoticed) {
  const Graph original = Counter();
  Graph exposed = original.Clone();
  StatefulModel stateful = {&original, {}};
  OPTFARM_ASSERT_OK_AND_ASSIGN(stateful.states, ExposeState(&exposed));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::GraphIo io,
                               graph::InferIo(exposed, {}));
  ExportOptions options;
  options.format = ModelFormat::kOnnx;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                               ExportModel(exposed, io, options));
  stateful.states[0].initial.data<float>()[0] = 0;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ExportDifference difference,
                               CompareExported(exposed, io, bytes, stateful));
  EXPECT_EQ(difference.unequal, 4);
}

TEST(StateExportTest, RefusesAFirstValueThatIsComputed) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Node("variable", "VarHandleOp", {}, Float("dtype"));
  b.Node("twice", "AddV2", {"x", "x"}, FloatT());
  b.Node("read", "ReadVariableOrInitial", {"variable", "twice"},
         Float("dtype"));
  b.Node("store", "AssignVariableOp", {"variable", "x"}, Float("dtype"));
  b.Node("out", "Identity", {"read", "^store"}, FloatT());
  Graph graph = b.Build();
  EXPECT_THAT(ExposeState(&graph).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is not constant")));
}

class RealStateTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RealStateTest, AnswersAreEqualOverSeveralRuns) {
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto def, formats::LoadModelDef(TestDataPath(absl::StrCat(
                    "interchange/models/tflite/", GetParam(), ".tflite"))));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Graph graph,
                               Graph::FromDef(std::move(def)));
  for (const int opset : {17, 21}) {
    ConvertOptions options;
    options.written.format = ModelFormat::kOnnx;
    options.written.opset = opset;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const ConvertedModel made,
                                 ConvertGraph(graph, options));
    ASSERT_TRUE(made.difference.has_value()) << made.line;
    EXPECT_LE(made.difference->largest, 1e-5 * made.difference->magnitude)
        << made.line;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RealStateTest,
                         ::testing::Values("okay_nabu", "micro_speech_lstm",
                                           "mnist_lstm_float",
                                           "mnist_lstm_int8"));

}  // namespace
}  // namespace optfarm::exporting
