// Real checkpoints and SavedModels, frozen: where TensorFlow's own frozen graph
// is there too, weights agree bit for bit and both give the same answers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/formats/tensorflow/freeze.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/graph/verify.h"
#include "engine/runtime/core/tensor.h"
#include "tests/golden/run_once.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm {
namespace {

using formats::FreezeOptions;
using formats::FreezeSource;
using formats::FrozenGraph;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::RunOnce;
using ::optfarm::testing::TestDataPath;
using tensorflow::GraphDef;

std::string Model(const std::string& path) {
  return TestDataPath("models/" + path);
}

std::map<std::string, const tensorflow::NodeDef*> NodesOf(
    const GraphDef& graph) {
  std::map<std::string, const tensorflow::NodeDef*> nodes;
  for (const tensorflow::NodeDef& node : graph.node()) {
    nodes[node.name()] = &node;
  }
  return nodes;
}

absl::StatusOr<GraphDef> FreezeTo(FreezeSource source,
                                  const std::vector<std::string>& outputs,
                                  bool drop_updates = false) {
  FreezeOptions options;
  options.outputs = outputs;
  options.drop_updates = drop_updates;
  auto frozen = formats::Freeze(std::move(source), options);
  if (!frozen.ok()) return frozen.status();
  return std::move(frozen->graph);
}

// Every constant of the twin is in `ours` with the same bytes.
void ExpectSameConstants(const GraphDef& ours, const GraphDef& twin) {
  const auto nodes = NodesOf(ours);
  int compared = 0;
  for (const tensorflow::NodeDef& node : twin.node()) {
    if (node.op() != "Const") continue;
    const auto it = nodes.find(node.name());
    ASSERT_NE(it, nodes.end()) << node.name();
    ASSERT_EQ(it->second->op(), "Const") << node.name();
    const auto want =
        runtime::Tensor::FromProto(node.attr().at("value").tensor());
    const auto have =
        runtime::Tensor::FromProto(it->second->attr().at("value").tensor());
    OPTFARM_ASSERT_OK(want);
    OPTFARM_ASSERT_OK(have);
    EXPECT_EQ(have->ToProto().SerializeAsString(),
              want->ToProto().SerializeAsString())
        << node.name();
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

// The same nodes with the same op and inputs, and no others.
void ExpectSameNodes(const GraphDef& ours, const GraphDef& twin) {
  const auto our_nodes = NodesOf(ours), twin_nodes = NodesOf(twin);
  for (const auto& [name, node] : twin_nodes) {
    const auto it = our_nodes.find(name);
    ASSERT_NE(it, our_nodes.end()) << name;
    EXPECT_EQ(it->second->op(), node->op()) << name;
    EXPECT_EQ(
        std::vector<std::string>(it->second->input().begin(),
                                 it->second->input().end()),
        std::vector<std::string>(node->input().begin(), node->input().end()))
        << name;
  }
  EXPECT_EQ(our_nodes.size(), twin_nodes.size());
}

void ExpectSameAnswers(const GraphDef& ours, const GraphDef& twin,
                       const std::string& output) {
  const auto have = RunOnce(ours, output), want = RunOnce(twin, output);
  OPTFARM_ASSERT_OK(have);
  OPTFARM_ASSERT_OK(want);
  EXPECT_EQ((*have)[0].ToProto().SerializeAsString(),
            (*want)[0].ToProto().SerializeAsString());
}

GraphDef Load(const std::string& path) {
  auto graph = formats::LoadGraphDef(Model(path));
  EXPECT_THAT(graph, IsOk());
  return graph.ok() ? *std::move(graph) : GraphDef();
}

TEST(FrozenModelsTest, CifarMetaGraphAgreesWithItsTwin) {
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(FreezeSource source,
                               formats::OpenMetaGraphToFreeze(
                                   Model("dotnet_cifar_model/model.ckpt.meta"),
                                   Model("dotnet_cifar_model/model.ckpt")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef frozen,
                               FreezeTo(std::move(source), {"Output"}));
  const GraphDef twin = Load("dotnet_cifar_model/frozen_model.pb");
  ExpectSameNodes(frozen, twin);
  ExpectSameConstants(frozen, twin);
  ExpectSameAnswers(frozen, twin, "Output");
}

TEST(FrozenModelsTest, CifarSavedModelAgreesWithTheSameCheckpoint) {
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      FreezeSource source, formats::OpenSavedModelToFreeze(
                               Model("dotnet_cifar_saved_model"), {"serve"}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const formats::Signature signature,
                               formats::FindSignature(source.meta, ""));
  EXPECT_EQ(signature.outputs[0].tensor, "add_1");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef frozen,
                               FreezeTo(std::move(source), {"add_1"}));
  EXPECT_THAT(RunOnce(frozen, "add_1"), IsOk());
}

TEST(FrozenModelsTest, V1CheckpointAgreesWithItsTwin) {
  OPTFARM_REQUIRE_TEST_DATA();
  const GraphDef twin = Load("mnist_v1_checkpoint/frozen_model.pb");
  const std::string checkpoint = Model("mnist_v1_checkpoint/model.ckpt");
  for (const bool meta : {false, true}) {
    auto source =
        meta ? formats::OpenMetaGraphToFreeze(
                   Model("mnist_v1_checkpoint/model.ckpt.meta"), checkpoint)
             : formats::OpenGraphToFreeze(Model("mnist_v1_checkpoint/graph.pb"),
                                          checkpoint);
    OPTFARM_ASSERT_OK(source);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef frozen,
                                 FreezeTo(*std::move(source), {"output"}));
    ExpectSameNodes(frozen, twin);
    ExpectSameConstants(frozen, twin);
    ExpectSameAnswers(frozen, twin, "output");
  }
}

TEST(FrozenModelsTest, LstmChainAgreesWithItsTwin) {
  OPTFARM_REQUIRE_TEST_DATA();
  const GraphDef twin = Load("reuben_lstm_chain/frozen_graph.pb");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      FreezeSource source,
      formats::OpenGraphToFreeze(Model("reuben_lstm_chain/graph.pb"),
                                 Model("reuben_lstm_chain/model.checkpoint")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef frozen,
                               FreezeTo(std::move(source), {"y"}));
  ExpectSameNodes(frozen, twin);
  ExpectSameConstants(frozen, twin);
}

// The checkpoint is a training graph's, the twin an evaluation graph's: what
// trains is left out, and the answers agree.
TEST(FrozenModelsTest, FakeQuantTrainingGraphAgreesWithItsTwin) {
  OPTFARM_REQUIRE_TEST_DATA();
  const GraphDef twin = Load("fakequant_mnist_edgetpu/frozen_model.pb");
  const auto open = [] {
    return formats::OpenMetaGraphToFreeze(
        Model("fakequant_mnist_edgetpu/checkpoints.meta"),
        Model("fakequant_mnist_edgetpu/checkpoints"));
  };
  const std::string output = "dense_1/Softmax";
  OPTFARM_ASSERT_OK_AND_ASSIGN(FreezeSource training, open());
  EXPECT_THAT(FreezeTo(std::move(training), {output}),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("--drop_updates")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(FreezeSource source, open());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef frozen,
                               FreezeTo(std::move(source), {output}, true));
  ExpectSameConstants(frozen, twin);
  ExpectSameAnswers(frozen, twin, output);
}

// One checkpoint for each variable, and one of them under another name.
TEST(FrozenModelsTest, ModelOf2015FreezesFromTwoCheckpoints) {
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      FreezeSource source,
      formats::OpenGraphToFreeze(Model("haskell_mnist_v1/MNIST.pb"),
                                 Model("haskell_mnist_v1/MNISTWts.ckpt") + "," +
                                     Model("haskell_mnist_v1/MNISTBias.ckpt")));
  FreezeOptions options;
  options.stored_names = {{"Variable", "bias"}};
  for (const auto& node : source.graph.node()) {
    if (node.op() == "Softmax") options.outputs = {node.name()};
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const FrozenGraph frozen,
                               formats::Freeze(std::move(source), options));
  EXPECT_EQ(frozen.converted_variables, 2);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               graph::Graph::FromDef(frozen.graph));
  EXPECT_THAT(graph::Verify(graph), IsOk());
}

TEST(FrozenModelsTest, SavedModelsRunFromTheirSignatures) {
  OPTFARM_REQUIRE_TEST_DATA();
  for (const char* folder : {"dotnet_mnist_conv_model", "dotnet_mnist_lr_model",
                             "regression_savedmodel_rust"}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        FreezeSource source,
        formats::OpenSavedModelToFreeze(Model(folder), {}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const formats::Signature signature,
                                 formats::FindSignature(source.meta, ""));
    const std::string output = signature.outputs[0].tensor;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphDef frozen,
                                 FreezeTo(std::move(source), {output}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                                 graph::Graph::FromDef(frozen));
    EXPECT_THAT(graph::Verify(graph), IsOk()) << folder;
    for (const auto& node : frozen.node()) {
      EXPECT_NE(node.op(), "VariableV2") << node.name();
    }
  }
}

}  // namespace
}  // namespace optfarm
