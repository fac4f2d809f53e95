// The example that ships with the project does what its page says: its
// accuracy, its size after each recipe, and that 8 bits need no layer kept in
// float.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "engine/graph/model_notes.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm {
namespace {

using ::testing::Contains;
using testing::FreshFolder;
using ::testing::HasSubstr;
using testing::SourcePath;

// `model` is the example's, or another file.
absl::StatusOr<v1::Report> Optimize(
    const std::string& recipe,
    const std::string& model = SourcePath("examples/digits/digits.pb"),
    bool says_scale = true) {
  optimize::OptimizeRequest request;
  absl::StatusOr<v1::Recipe> loaded = optimize::LoadRecipe(recipe);
  if (!loaded.ok()) return loaded.status();
  request.recipe = *std::move(loaded);
  request.model_path = model;
  const auto added =
      request.data.AddFolder(SourcePath("examples/digits/images"));
  if (!added.ok()) return added.status();
  if (says_scale) request.data.SetMeanAndStd(127.5, 127.5);
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

TEST(DigitsExampleTest, PicturesAreScaledAsTheModelsFileSays) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string bytes,
      ReadFile(SourcePath("examples/digits/digits.pb")));
  for (const std::vector<float>& scale :
       std::vector<std::vector<float>>{{127.5f}, {127.5f, 127.5f, 127.25f}}) {
    tensorflow::GraphDef graph;
    ASSERT_TRUE(graph.ParseFromString(bytes));
    graph::ModelNotes notes;
    notes.mean = notes.std = scale;
    graph::SetModelNotes(notes, graph.mutable_node(graph.node_size() - 1));
    const std::string path = JoinPath(FreshFolder(), "digits.pb");
    ASSERT_TRUE(WriteFileAtomically(path, graph.SerializeAsString()).ok());
    OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                                 Optimize("fp32", path, false));
    // All of them: the recipe still does not calibrate.
    EXPECT_EQ(report.float_accuracy().samples(), 300);
    EXPECT_GE(report.float_accuracy().top1(), 96);
    EXPECT_THAT(report.warnings(),
                Contains(HasSubstr("Pictures were fed as (value - 127.5")));
  }
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
