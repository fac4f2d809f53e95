#include "engine/optimize/calibration/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/files.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "tests/engine/optimize/small_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::FreshFolder;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  v1::Report report;
  std::string graph;
  std::map<std::string, v1::ObservedRange> ranges;
};

// The small model made integer with ranges taken by `calibration`.
Outcome Calibrate(const v1::Calibration& calibration, int threads = 2) {
  const std::string folder = FreshFolder();
  OptimizeRequest request;
  request.recipe = *BuiltInRecipe("int8-tf14");
  request.recipe.mutable_calibration()->MergeFrom(calibration);
  request.recipe.clear_bounds();
  request.model_path = testing::WriteModel(testing::SmallModel(), folder);
  request.data.AddInput("input",
                        JoinPath(testing::WriteSamples(24, folder), "x.npy"));
  request.out_folder = JoinPath(folder, "out");
  request.threads = threads;
  EXPECT_TRUE(MakeFolders(request.out_folder).ok());
  Outcome outcome;
  auto report = RunOptimize(request, nullptr);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return outcome;
  outcome.report = *std::move(report);
  outcome.graph = *ReadFile(JoinPath(request.out_folder, "optimized.pb"));
  for (const v1::ObservedRange& range :
       outcome.report.calibration().observed()) {
    outcome.ranges[range.node()] = range;
  }
  return outcome;
}

v1::Calibration Method(v1::Calibration::RangeMethod method) {
  v1::Calibration calibration;
  calibration.set_range_method(method);
  return calibration;
}

TEST(CalibrationTest, RangesOfDistributionsLieWithinTheExtremes) {
  const Outcome extremes = Calibrate(Method(v1::Calibration::MIN_MAX));
  ASSERT_GT(extremes.ranges.size(), 1u);
  for (const auto method : {v1::Calibration::MSE, v1::Calibration::KL}) {
    const Outcome outcome = Calibrate(Method(method));
    EXPECT_THAT(outcome.report.calibration().method(), HasSubstr("24 samples"));
    ASSERT_EQ(outcome.ranges.size(), extremes.ranges.size());
    for (const auto& [node, range] : outcome.ranges) {
      const v1::ObservedRange& whole = extremes.ranges.at(node);
      const double slack = 1e-6 * (whole.max() - whole.min());
      EXPECT_GE(range.min(), std::min(whole.min(), 0.0) - slack) << node;
      EXPECT_LE(range.max(), std::max(whole.max(), 0.0) + slack) << node;
      EXPECT_GT(range.max(), range.min()) << node;
    }
    EXPECT_EQ(outcome.report.outputs_compared(0).top1_agreement(), 1);
  }
}

TEST(CalibrationTest, DoesNotDependOnTheNumberOfThreads) {
  for (const auto method :
       {v1::Calibration::MIN_MAX, v1::Calibration::MSE, v1::Calibration::KL}) {
    v1::Calibration calibration = Method(method);
    calibration.set_freeze_inputs(true);
    EXPECT_EQ(Calibrate(calibration, 1).graph, Calibrate(calibration, 4).graph);
  }
}

TEST(CalibrationTest, FreezesInputsWhenAskedTo) {
  v1::Calibration calibration = Method(v1::Calibration::MSE);
  const Outcome dynamic = Calibrate(calibration);
  EXPECT_THAT(dynamic.report.transform_string(),
              Not(HasSubstr("freeze_quantize_ranges")));
  EXPECT_THAT(dynamic.graph, HasSubstr("/min"));
  for (const auto method : {v1::Calibration::MIN_MAX, v1::Calibration::KL}) {
    calibration = Method(method);
    calibration.set_freeze_inputs(true);
    const Outcome frozen = Calibrate(calibration);
    EXPECT_THAT(frozen.report.transform_string(),
                HasSubstr("freeze_quantize_ranges"));
    EXPECT_GT(frozen.ranges.size(), dynamic.ranges.size());
    EXPECT_EQ(frozen.report.outputs_compared(0).top1_agreement(), 1);
  }
}

}  // namespace
}  // namespace optfarm::optimize
