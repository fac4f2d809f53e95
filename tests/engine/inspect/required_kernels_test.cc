// Which kernels graphs need.

#include "engine/inspect/required_kernels.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "engine/formats/tensorflow/graph_file.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::inspect {
namespace {

using ::optfarm::testing::TestDataPath;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

RequiredKernels KernelsOf(const std::string& text) {
  tensorflow::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  RequiredKernels kernels;
  AddRequiredKernels(graph, &kernels);
  return kernels;
}

TEST(RequiredKernelsTest, ClassesCarryTheNodesTypes) {
  const RequiredKernels kernels = KernelsOf(R"(
    node { name: "a" op: "MatMul"
      attr { key: "T" value { type: DT_DOUBLE } } }
    node { name: "b" op: "Reshape" attr { key: "T" value { type: DT_INT32 } } }
    node { name: "c" op: "Gather"
      attr { key: "Tparams" value { type: DT_INT32 } }
      attr { key: "Tindices" value { type: DT_INT64 } } }
    node { name: "d" op: "AccumulateNV2" })");
  EXPECT_THAT(kernels.classes,
              ElementsAre(Pair("AccumulateNV2", ""),
                          Pair("Gather",
                               "GatherOp<CPUDevice, "
                               "::tensorflow::int32, int64>"),
                          Pair("MatMul", "MatMulOp<CPUDevice, double, false >"),
                          Pair("Reshape", "ReshapeOp")));
  EXPECT_THAT(kernels.without_class, IsEmpty());
}

TEST(RequiredKernelsTest, TypesThatTensorFlowHasNoKernelForHaveNoClass) {
  const RequiredKernels kernels = KernelsOf(R"(
    node { name: "a" op: "Conv2D" attr { key: "T" value { type: DT_INT32 } } }
    node { name: "b" op: "Softmax" })");
  EXPECT_THAT(kernels.classes, IsEmpty());
  EXPECT_THAT(kernels.without_class, ElementsAre("Conv2D", "Softmax"));
}

TEST(RequiredKernelsTest, FunctionBodiesCountAndCallsDoNot) {
  const RequiredKernels kernels = KernelsOf(R"(
    node { name: "a" op: "Twice" }
    library { function { signature { name: "Twice" }
      node_def { name: "r" op: "Relu"
        attr { key: "T" value { type: DT_FLOAT } } } } })");
  EXPECT_THAT(kernels.classes,
              ElementsAre(Pair("Relu", "ReluOp<CPUDevice, float>")));
  EXPECT_THAT(kernels.without_class, IsEmpty());
  EXPECT_THAT(kernels.dtypes, ElementsAre(Pair("Relu", "float")));
}

TEST(RequiredKernelsTest, RealModelsHaveAClassForEveryOp) {
  OPTFARM_REQUIRE_TEST_DATA();
  for (const char* model : {"mobilenet_v1_0.25_128/frozen_graph.pb",
                            "mobilenet_v1_0.25_128/quantized_graph.pb",
                            "squeezenet_160_aiy/squeezenet_160res_5x5_0.75.pb",
                            "conv_actions_frozen/conv_actions_frozen.pb",
                            "customvision_squeezenet/model.pb"}) {
    const auto graph =
        formats::LoadGraphDef(TestDataPath(std::string("models/") + model));
    OPTFARM_ASSERT_OK(graph);
    RequiredKernels kernels;
    AddRequiredKernels(*graph, &kernels);
    EXPECT_THAT(kernels.without_class, IsEmpty()) << model;
    EXPECT_THAT(kernels.not_in_runtime, IsEmpty()) << model;
  }
}

}  // namespace
}  // namespace optfarm::inspect
