#include "engine/optimize/judging/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/files.h"
#include "engine/formats/samples/npy.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "tests/engine/optimize/small_model.h"
#include "tests/support/loop_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Property;
using testing::SmallModel;
using testing::WriteModel;
using testing::WriteSamples;

OptimizeRequest Request(const std::string& recipe, int samples = 24) {
  OptimizeRequest request;
  request.model_path = WriteModel(SmallModel(), FreshFolder());
  request.recipe = *BuiltInRecipe(recipe);
  if (recipe == "int8-tf14") {
    // TensorFlow's chain with frozen ranges.
    const v1::Recipe fast = *BuiltInRecipe("int8-fast");
    *request.recipe.mutable_calibration() = fast.calibration();
    request.recipe.mutable_calibration()->set_range_method(
        v1::Calibration::MIN_MAX);
    *request.recipe.mutable_bounds() = fast.bounds();
  }
  const std::string data = WriteSamples(samples, FreshFolder());
  request.data.AddInput("input", JoinPath(data, "x.npy"));
  request.data.AddLabels(JoinPath(data, "labels.npy"));
  request.out_folder = FreshFolder();
  request.threads = 2;
  return request;
}

TEST(SensitivityTest, MeasuresEachQuantizedLayerAlone) {
  OptimizeRequest request = Request("int8-tf14");
  request.recipe.mutable_verification()->set_sensitivity(true);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  EXPECT_THAT(report.sensitivity(),
              Contains(AllOf(Property(&v1::LayerSensitivity::name, "conv"),
                             Property(&v1::LayerSensitivity::op, "Conv2D"))));
  double worst_alone = 1e9;
  for (const v1::LayerSensitivity& layer : report.sensitivity()) {
    EXPECT_FALSE(std::isnan(layer.alone_snr_db())) << layer.name();
    EXPECT_GE(layer.result_milliseconds(), 0) << layer.name();
    worst_alone = std::min(worst_alone, layer.output_snr_db());
    if (layer.name() == "hidden") {
      // A byte instead of four for each of its weights.
      EXPECT_EQ(layer.float_bytes_more(), 3 * 256 * 64);
    }
  }
  // One layer costs no more than all together, but for errors that happen to
  // cancel on the few samples.
  EXPECT_GE(worst_alone, report.outputs_compared(0).snr_db() - 3);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string svg,
      ReadFile(JoinPath(request.out_folder, "sensitivity.svg")));
  EXPECT_THAT(svg, HasSubstr(">conv<"));
}

// One layer quantized is that layer alone: with its quantized values, its
// ranges, its rounding and its bias.
TEST(SensitivityTest, OneLayerAloneIsTheResultOfOneQuantizedLayer) {
  OptimizeRequest request = Request("int8-fast", 4);
  request.recipe.mutable_verification()->set_sensitivity(true);
  for (const char* node : {"relu", "flat"}) {
    request.recipe.mutable_keep_float()->add_nodes(node);
  }
  request.recipe.mutable_keep_float()->add_nodes("scores");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  ASSERT_EQ(report.sensitivity_size(), 1);
  EXPECT_EQ(report.sensitivity(0).name(), "hidden");
  EXPECT_NEAR(report.sensitivity(0).output_snr_db(),
              report.outputs_compared(0).snr_db(), 0.01);
}

TEST(SensitivityTest, NoLayerAloneIsWorseThanWithAllBeforeIt) {
  OptimizeRequest request = Request("int8-fast");
  request.recipe.mutable_verification()->set_sensitivity(true);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  EXPECT_GE(report.sensitivity_size(), 3);
  for (const v1::LayerSensitivity& layer : report.sensitivity()) {
    EXPECT_GE(layer.alone_snr_db(), layer.cumulative_snr_db() - 3)
        << layer.name();
  }
}

// Its tensor is that of the last iteration; what it loses in all of them is
// seen in the outputs.
TEST(SensitivityTest, ALayerInsideALoopIsMeasuredToo) {
  OptimizeRequest request;
  request.model_path =
      WriteModel(::optfarm::testing::Loop().Build().ToDef(), FreshFolder());
  request.recipe = *BuiltInRecipe("int8-fast");
  request.recipe.mutable_verification()->set_sensitivity(true);
  std::vector<float> values;
  for (int i = 0; i < 12 * 6; ++i) {
    values.push_back(static_cast<float>(i * 37 % 101 - 50) / 50.0f);
  }
  const std::string array = JoinPath(FreshFolder(), "x.npy");
  OPTFARM_ASSERT_OK(formats::SaveNpy(
      runtime::Tensor::FromValues<float>(runtime::Shape({12, 2, 3}), values)
          .ToProto(),
      array));
  request.data.AddInput("in", array);
  request.out_folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  ASSERT_EQ(report.sensitivity_size(), 1);
  const v1::LayerSensitivity& layer = report.sensitivity(0);
  EXPECT_EQ(layer.name(), "relu");
  EXPECT_GT(layer.alone_snr_db(), 20);
  // The only layer loses what the result loses.
  EXPECT_NEAR(layer.output_snr_db(), report.outputs_compared(0).snr_db(), 3);
  EXPECT_EQ(layer.float_bytes_more(), 3 * 9);
}

TEST(SensitivityTest, FloatGraphsHaveNoSuchLayers) {
  OptimizeRequest request = Request("fp32");
  request.recipe.mutable_verification()->set_sensitivity(true);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  EXPECT_THAT(report.sensitivity(), IsEmpty());
}

TEST(SearchTest, ShowsThePriceOfEachChain) {
  OptimizeRequest request = Request("int8");
  // More chains are tried because none is so small.
  request.recipe.mutable_bounds()->set_max_size_ratio(0.01);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  ASSERT_GT(report.search_size(), 1);
  int taken = 0;
  for (const v1::SearchStep& step : report.search()) {
    EXPECT_GT(step.bytes(), 0);
    EXPECT_GT(step.milliseconds(), 0);
    EXPECT_GE(step.agreement(), 0);
    EXPECT_FALSE(step.description().empty());
    if (!step.taken()) continue;
    ++taken;
    EXPECT_EQ(step.bytes(), report.size_after().file_bytes());
  }
  EXPECT_EQ(taken, 1);
}

TEST(LayerHistogramTest, ShowsChosenLayersBeforeAndAfter) {
  OptimizeRequest request = Request("int8-tf14");
  request.recipe.mutable_verification()->add_histograms("relu");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  ASSERT_EQ(report.histograms_size(), 1);
  const v1::LayerHistogram& relu = report.histograms(0);
  EXPECT_EQ(relu.name(), "relu");
  EXPECT_EQ(relu.op(), "Relu");
  EXPECT_GE(relu.low(), -0.1);
  EXPECT_GT(relu.width(), 0);
  int64_t before = 0, after = 0;
  for (const int64_t count : relu.original()) before += count;
  for (const int64_t count : relu.result()) after += count;
  EXPECT_GT(before, 0);
  EXPECT_EQ(after, before);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string svg,
      ReadFile(JoinPath(request.out_folder, "histograms.svg")));
  EXPECT_THAT(svg, HasSubstr("relu (Relu)"));
}

TEST(LayerHistogramTest, NamesTheNearestNode) {
  OptimizeRequest request = Request("int8-tf14");
  request.recipe.mutable_verification()->add_histograms("rela");
  EXPECT_THAT(
      RunOptimize(request, nullptr).status(),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("no node 'rela'"), HasSubstr("'relu'"))));
}

TEST(ReportTest, HasIntervalsForTop1AndTop5) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(Request("int8"), nullptr));
  EXPECT_TRUE(report.has_paired_accuracy());
  EXPECT_TRUE(report.has_paired_top5());
  EXPECT_EQ(report.paired_top5().samples(), report.paired_accuracy().samples());
  EXPECT_GT(report.size_before().zstd_bytes(), 0);
  EXPECT_LT(report.size_after().zstd_bytes(), report.size_after().file_bytes());
}

}  // namespace
}  // namespace optfarm::optimize
