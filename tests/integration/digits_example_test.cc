// The example that ships with the project does what its page says: its
// accuracy, its size after each recipe, and that 8 bits need no layer kept in
// float.

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm {
namespace {

using testing::FreshFolder;
using testing::SourcePath;

absl::StatusOr<v1::Report> Optimize(const std::string& recipe) {
  optimize::OptimizeRequest request;
  absl::StatusOr<v1::Recipe> loaded = optimize::LoadRecipe(recipe);
  if (!loaded.ok()) return loaded.status();
  request.recipe = *std::move(loaded);
  request.model_path = SourcePath("examples/digits/digits.pb");
  const auto added =
      request.data.AddFolder(SourcePath("examples/digits/images"));
  if (!added.ok()) return added.status();
  request.data.SetMeanAndStd(127.5, 127.5);
  request.out_folder = FreshFolder();
  request.tool_version = "test";
  return optimize::RunOptimize(request,
                               [](const optimize::OptimizeProgress&) {});
}

std::string FailedGates(const v1::Report& report) {
  std::string text;
  for (const v1::GateResult& gate : report.gates()) {
    if (!gate.passed())
      absl::StrAppend(&text, gate.name(), ": ", gate.message(), "\n");
  }
  return text;
}

double SizeRatio(const v1::Report& report) {
  return static_cast<double>(report.size_after().file_bytes()) /
         static_cast<double>(report.size_before().file_bytes());
}

TEST(DigitsExampleTest, FloatRecipeKeepsEveryAnswer) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, Optimize("fp32"));
  EXPECT_TRUE(report.passed()) << FailedGates(report);
  EXPECT_EQ(report.float_accuracy().samples(), 300);
  EXPECT_GE(report.float_accuracy().top1(), 96);
  EXPECT_EQ(report.optimized_accuracy().top1(), report.float_accuracy().top1());
}

TEST(DigitsExampleTest, Int8IsAQuarterOfTheSizeAndAsAccurate) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, Optimize("int8"));
  EXPECT_TRUE(report.passed()) << FailedGates(report);
  EXPECT_LE(SizeRatio(report), 0.30);
  EXPECT_GE(report.optimized_accuracy().top1(),
            report.float_accuracy().top1() - 1);
  EXPECT_EQ(report.kept_float_size(), 0)
      << absl::StrJoin(report.kept_float(), ", ");
}

TEST(DigitsExampleTest, Weights8IsAQuarterOfTheSizeAndAsAccurate) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report, Optimize("weights8"));
  EXPECT_TRUE(report.passed()) << FailedGates(report);
  EXPECT_LE(SizeRatio(report), 0.30);
  EXPECT_GE(report.optimized_accuracy().top1(),
            report.float_accuracy().top1() - 1);
}

TEST(DigitsExampleTest, TheRecipeInTheExamplesHoldsItsBounds) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const v1::Report report,
      Optimize(SourcePath("examples/recipes/careful_int8.yaml")));
  EXPECT_TRUE(report.passed()) << FailedGates(report);
}

}  // namespace
}  // namespace optfarm
