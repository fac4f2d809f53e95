#include "engine/optimize/samples/data_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "engine/formats/samples/npy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What is said of samples of nine values each.
std::vector<std::string> Warnings(
    int64_t samples, const std::vector<float>& values,
    std::optional<std::pair<float, float>> trained_range = std::nullopt) {
  const std::string path = JoinPath(optfarm::testing::FreshFolder(), "x.npy");
  EXPECT_TRUE(formats::SaveNpy(runtime::Tensor::FromValues<float>(
                                   runtime::Shape({samples, 9}), values)
                                   .ToProto(),
                               path)
                  .ok());
  ModelTensor input;
  input.name = {"x", 0};
  input.dtype = tensorflow::DT_FLOAT;
  input.shape = {9};
  input.trained_range = trained_range;
  LocalData local;
  local.AddInput("x", path);
  const auto data = Dataset::Open(local, {}, {input});
  EXPECT_TRUE(data.ok());
  if (!data.ok()) return {};
  SampleReader reader(*data);
  return CheckData({input}, data->size(), &reader);
}

std::vector<float> Ramp(int64_t count, float step) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(step * static_cast<float>(i));
  }
  return values;
}

TEST(DataCheckTest, GoodDataNeedNoWords) {
  EXPECT_THAT(Warnings(20, Ramp(180, 0.01f)), IsEmpty());
}

TEST(DataCheckTest, ComparesWithTheRangeOfTraining) {
  // The first 16 samples are looked at.
  const std::vector<float> samples = Ramp(180, 0.01f);
  EXPECT_THAT(Warnings(20, samples, std::pair(0.0f, 1.75f)), IsEmpty());
  EXPECT_THAT(Warnings(20, samples, std::pair(-1.0f, 1.0f)),
              ElementsAre(HasSubstr("trained with -1..1")));
  EXPECT_THAT(Warnings(20, samples, std::pair(0.0f, 255.0f)),
              ElementsAre(HasSubstr("lie in 0..1.43")));
}

TEST(DataCheckTest, FewSamplesAreSaid) {
  EXPECT_THAT(Warnings(3, Ramp(27, 0.1f)),
              ElementsAre(HasSubstr("only 3 samples")));
  EXPECT_THAT(Warnings(1, Ramp(9, 0.1f)),
              ElementsAre(HasSubstr("only 1 sample;")));
}

TEST(DataCheckTest, GreyLevelsAreSaid) {
  EXPECT_THAT(Warnings(20, Ramp(180, 1)),
              ElementsAre(HasSubstr("look like grey levels")));
}

TEST(DataCheckTest, ConstantAndRepeatedSamplesAreSaid) {
  EXPECT_THAT(Warnings(20, std::vector<float>(180, 0.5f)),
              ElementsAre(HasSubstr("are 0.5")));
  std::vector<float> repeated;
  for (int i = 0; i < 180; ++i) {
    repeated.push_back(0.1f * static_cast<float>(i % 9));
  }
  EXPECT_THAT(Warnings(20, repeated), ElementsAre(HasSubstr("are the same")));
}

TEST(DataCheckTest, NanIsSaid) {
  std::vector<float> values = Ramp(180, 0.01f);
  values[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Warnings(20, values), Contains(HasSubstr("NaN")));
}

}  // namespace
}  // namespace optfarm::optimize
