// Real models as memory-mapped packages: the same answers to the last bit, with
// weights used where they lie.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "engine/formats/tensorflow/memmapped_package.h"
#include "tests/golden/run_once.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::RunOnce;
using ::optfarm::testing::TestDataPath;

TEST(MemmappedModelsTest, AnswersAreThoseOfTheGraph) {
  OPTFARM_REQUIRE_TEST_DATA();
  const struct {
    const char* file;
    const char* output;
  } kModels[] = {
      {"mobilenet_v1_0.25_128/frozen_graph.pb",
       "MobilenetV1/Predictions/Reshape_1"},
      {"mobilenet_v1_0.25_128/quantized_graph.pb",
       "MobilenetV1/Predictions/Reshape_1"},
      {"mnist_softmax/mnist.pb", "softmax"},
  };
  for (const auto& model : kModels) {
    SCOPED_TRACE(model.file);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const tensorflow::GraphDef graph,
                                 formats::LoadGraphDef(TestDataPath(
                                     std::string("models/") + model.file)));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto want, RunOnce(graph, model.output));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const formats::MemmappedBytes made,
                                 formats::SerializeMemmapped(graph, 1000));
    EXPECT_GT(made.converted_nodes, 0);
    const std::string path = JoinPath(FreshFolder(), "model.mmpb");
    ASSERT_THAT(WriteFileAtomically(path, made.bytes), IsOk());
    OPTFARM_ASSERT_OK_AND_ASSIGN(formats::LoadedGraph loaded,
                                 formats::LoadGraph(path));
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto have,
        RunOnce(loaded.def, model.output, formats::RegionsOf(loaded.package)));
    EXPECT_EQ(have[0].ToProto().SerializeAsString(),
              want[0].ToProto().SerializeAsString());
  }
}

}  // namespace
}  // namespace optfarm
