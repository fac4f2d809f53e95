// Real models that come quantized, after a recipe that keeps them: the graph
// and the file of their own format give their own reference answers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/files.h"
#include "engine/formats/models/load_model.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "tests/golden/interchange_case.h"
#include "tests/golden/interchange_run.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class KeptQuantizedTest : public ::testing::TestWithParam<std::string> {};

void ExpectReferenceAnswers(const std::string& path,
                            const InterchangeCase& golden) {
  SCOPED_TRACE(path);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto def, formats::LoadModelDef(path));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               graph::Graph::FromDef(std::move(def)));
  StepCount steps;
  for (int sample = 0; sample < golden.samples(); ++sample) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<runtime::Tensor> answers,
                                 RunSample(graph, golden, sample));
    for (int i = 0; i < golden.outputs(sample); ++i) {
      const runtime::Tensor& answer = answers[static_cast<size_t>(i)];
      EXPECT_EQ(golden.Disagreement(sample, i, answer), "")
          << "sample " << sample << ", output " << golden.OutputName(sample, i);
      steps += golden.Steps(sample, i, answer);
    }
  }
  EXPECT_EQ(steps.near, steps.elements);
}

TEST_P(KeptQuantizedTest, GivesItsOwnAnswers) {
  OPTFARM_REQUIRE_TEST_DATA();
  const InterchangeCase golden(GetParam());
  optimize::OptimizeRequest request;
  request.model_path = golden.ModelPath();
  OPTFARM_ASSERT_OK_AND_ASSIGN(request.recipe, optimize::BuiltInRecipe("int8"));
  request.out_folder = FreshFolder();
  const bool is_onnx = absl::StartsWith(GetParam(), "onnx/");
  request.out_formats = {is_onnx ? v1::ONNX : v1::TFLITE};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               optimize::RunOptimize(request, nullptr));
  EXPECT_TRUE(report.passed()) << report.DebugString();
  EXPECT_THAT(report.warnings(), Contains(HasSubstr("is quantized already")));
  for (const v1::TensorComparison& output : report.outputs_compared()) {
    EXPECT_EQ(output.max_abs_error(), 0) << output.name();
  }
  ExpectReferenceAnswers(JoinPath(request.out_folder, "optimized.pb"), golden);
  ASSERT_EQ(report.exports_size(), 1);
  ExpectReferenceAnswers(
      JoinPath(request.out_folder, report.exports(0).artifact()), golden);
}

INSTANTIATE_TEST_SUITE_P(
    Models, KeptQuantizedTest,
    ::testing::Values("onnx/micro_kws_qdq", "tflite/ad01_int8",
                      "tflite/kws_ref_model", "tflite/micro_speech",
                      "tflite/mobilenet_v1_025_128_quant",
                      "tflite/resnet8_int8", "tflite/stm_mnv1_05_flowers",
                      "tflite/vww_96_int8"),
    ModelTestName);

}  // namespace
}  // namespace optfarm::testing
