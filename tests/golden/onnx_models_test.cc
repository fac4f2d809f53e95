// Real ONNX models against the answers of ONNX Runtime, and files that must be
// refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/verify.h"
#include "tests/golden/interchange_case.h"
#include "tests/golden/interchange_run.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

using ::testing::HasSubstr;

class OnnxModelTest : public ::testing::TestWithParam<std::string> {};

TEST_P(OnnxModelTest, AnswersAsOnnxRuntime) {
  OPTFARM_REQUIRE_TEST_DATA();
  const InterchangeCase golden("onnx/" + GetParam());
  OPTFARM_ASSERT_OK_AND_ASSIGN(formats::LoadedGraph file,
                               formats::LoadModel(golden.ModelPath()));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               graph::Graph::FromDef(std::move(file.def)));
  OPTFARM_ASSERT_OK(graph::Verify(graph));
  EXPECT_EQ(graph::ReadModelInterface(graph).format, "onnx");
  for (int sample = 0; sample < golden.samples(); ++sample) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<runtime::Tensor> answers,
                                 RunSample(graph, golden, sample));
    for (int i = 0; i < golden.outputs(sample); ++i) {
      EXPECT_EQ(golden.Disagreement(sample, i, answers[static_cast<size_t>(i)]),
                "")
          << "sample " << sample << ", output " << golden.OutputName(sample, i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OnnxModelTest,
                         ::testing::ValuesIn(InterchangeModels("onnx")),
                         ModelTestName);

class RefusedOnnxTest : public ::testing::TestWithParam<RefusedFile> {};

TEST_P(RefusedOnnxTest, SaysWhy) {
  OPTFARM_REQUIRE_TEST_DATA();
  const auto loaded = formats::LoadModel(
      TestDataPath(absl::StrCat("interchange/refuse/", GetParam().file)));
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(std::string(loaded.status().message()),
              HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Files, RefusedOnnxTest,
    ::testing::Values(
        RefusedFile{"nanoGPT.onnx", "(Equal)"},
        RefusedFile{"espcn_quant.onnx", "operator onnx.brevitas.Quant"},
        RefusedFile{"super_resolution_op18.onnx",
                    "operator com.microsoft.extensions.DecodeImage"},
        RefusedFile{"svc_har.onnx", "operator ai.onnx.ml.SVMClassifier"}),
    RefusedTestName);

}  // namespace
}  // namespace optfarm::testing
