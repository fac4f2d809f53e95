#include "engine/optimize/judging/original_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "engine/formats/samples/npy.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/runtime/core/tensor.h"
#include "tests/engine/optimize/small_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using runtime::Shape;
using runtime::Tensor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SmallModel;
using testing::WriteModel;

TEST(ChanceTest, ManyClassesNeedMoreThanTwoDeviations) {
  // 300 samples of 1001 classes: 0.3 by chance, deviation 0.55.
  EXPECT_TRUE(IsNoBetterThanChance(0, 300, 1001));
  EXPECT_TRUE(IsNoBetterThanChance(1, 300, 1001));
  EXPECT_FALSE(IsNoBetterThanChance(2, 300, 1001));
}

TEST(ChanceTest, FewClassesNeedMoreThanOneDeviation) {
  // 100 samples of 2 classes: 50 by chance, deviation 5.
  EXPECT_TRUE(IsNoBetterThanChance(55, 100, 2));
  EXPECT_FALSE(IsNoBetterThanChance(56, 100, 2));
}

TEST(ChanceTest, FewSamplesTellNothing) {
  EXPECT_FALSE(IsNoBetterThanChance(0, 19, 1001));
  EXPECT_FALSE(IsNoBetterThanChance(0, 49, 2));
  EXPECT_FALSE(IsNoBetterThanChance(0, 100, 1));
}

constexpr int kSamples = 60;

// The small model with its pictures and labels of the test's own.
OptimizeRequest Request(const std::vector<int64_t>& labels) {
  OptimizeRequest request;
  request.model_path = WriteModel(SmallModel(), FreshFolder());
  request.recipe = *BuiltInRecipe("fp32");
  const std::string folder =
      testing::WriteSamples(static_cast<int>(labels.size()), FreshFolder());
  request.data.AddInput("input", JoinPath(folder, "x.npy"));
  const std::string path = JoinPath(folder, "own_labels.npy");
  OPTFARM_CHECK(
      formats::SaveNpy(Tensor::FromValues<int64_t>(
                           Shape({static_cast<int64_t>(labels.size())}), labels)
                           .ToProto(),
                       path)
          .ok());
  request.data.AddLabels(path);
  request.out_folder = FreshFolder();
  return request;
}

// What the pictures show, or another class for each.
std::vector<int64_t> Classes(int shift) {
  std::vector<int64_t> classes;
  for (int i = 0; i < kSamples; ++i) classes.push_back((i + shift) % 3);
  return classes;
}

TEST(OriginalCheckTest, ModelThatIsRightGoesOn) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(Request(Classes(0)), nullptr));
  EXPECT_EQ(report.float_accuracy().top1(), 100);
  EXPECT_THAT(report.distrust(), IsEmpty());
}

TEST(OriginalCheckTest, ModelThatGuessesStopsTheJob) {
  // Each picture has each label equally often, and no shift helps.
  std::vector<int64_t> labels;
  for (int i = 0; i < kSamples; ++i) labels.push_back(i / 3 % 3);
  EXPECT_THAT(
      RunOptimize(Request(labels), nullptr),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("right on 20 of 60 labelled samples"),
                     HasSubstr("among 3 classes"), HasSubstr("It was fed"),
                     HasSubstr("Tried without success"),
                     HasSubstr("allow_chance_accuracy"))));
}

TEST(OriginalCheckTest, NamesTheShiftOfLabelsThatFits) {
  EXPECT_THAT(RunOptimize(Request(Classes(1)), nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("right on 0 of 60 labelled samples"),
                             HasSubstr("give --labels_offset=-1"))));
}

TEST(OriginalCheckTest, RecipeMayAllowItAndTheReportSaysSo) {
  OptimizeRequest request = Request(Classes(1));
  request.recipe.mutable_verification()->set_allow_chance_accuracy(true);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  EXPECT_THAT(report.distrust(),
              ElementsAre(HasSubstr("right on 0 of 60 labelled samples")));
}

TEST(OriginalCheckTest, NamesTheScaleThatFits) {
  OptimizeRequest request = Request(Classes(0));
  std::vector<uint8_t> pixels(kSamples * 64);
  for (int i = 0; i < kSamples; ++i) {
    for (int row = 0; row < 8; ++row) {
      const int third = row < 3 ? 0 : (row < 5 ? 1 : 2);
      for (int column = 0; column < 8; ++column) {
        pixels[i * 64 + row * 8 + column] = third == i % 3 ? 250 : 5;
      }
    }
  }
  const std::string path = JoinPath(FreshFolder(), "bytes.npy");
  OPTFARM_ASSERT_OK(formats::SaveNpy(
      Tensor::FromValues<uint8_t>(Shape({kSamples, 1, 8, 8, 1}), pixels)
          .ToProto(),
      path));
  LocalData data;
  data.AddInput("input", path);
  data.AddLabels(
      request.data.PathOf(request.data.Find(v1::DataSource::LABELS)));
  // Everything below zero, which the model's Relu cuts off.
  data.SetMeanAndStd(1000, 1);
  request.data = data;
  EXPECT_THAT(RunOptimize(request, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("it is right on 40 of 40"),
                             HasSubstr("give --input_mean="))));
}

Reference AnswersOf(const std::vector<std::vector<float>>& rows) {
  Reference reference;
  for (const std::vector<float>& row : rows) {
    reference.samples.push_back(static_cast<int64_t>(reference.samples.size()));
    reference.outputs.push_back({Tensor::FromValues<float>(
        Shape({1, static_cast<int64_t>(row.size())}), row)});
  }
  return reference;
}

TEST(SuspectAnswersTest, OneClassForNearlyAllSamples) {
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 40; ++i) {
    std::vector<float> row(12, 0.01f * static_cast<float>(i));
    row[i == 7 ? 3 : 5] = 1;
    rows.push_back(row);
  }
  EXPECT_THAT(SuspectAnswers(AnswersOf(rows), 0),
              ElementsAre(HasSubstr("class 5 for 39 of 40 samples")));
  for (int i = 0; i < 10; ++i) rows[i][i == 5 ? 6 : i] = 2;
  EXPECT_THAT(SuspectAnswers(AnswersOf(rows), 0), IsEmpty());
}

TEST(SuspectAnswersTest, TheSameNumbersForAllSamples) {
  std::vector<std::vector<float>> rows(25, {1, 2, 3});
  EXPECT_THAT(SuspectAnswers(AnswersOf(rows), -1),
              ElementsAre(HasSubstr("the same answer for all 25 samples")));
  rows[24][0] = 0;
  EXPECT_THAT(SuspectAnswers(AnswersOf(rows), -1), IsEmpty());
  rows.resize(5);
  EXPECT_THAT(SuspectAnswers(AnswersOf(rows), -1), IsEmpty());
}

}  // namespace
}  // namespace optfarm::optimize
