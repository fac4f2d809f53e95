#include "engine/optimize/samples/sound_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/formats/samples/wav.h"
#include "tests/support/status_matchers.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Dims = std::vector<int64_t>;

// What an input of the shape is fed of a sound of 0.5 and -0.5.
absl::StatusOr<runtime::Tensor> Fed(std::optional<Dims> shape) {
  ModelTensor input;
  input.name = {"sound", 0};
  input.shape = std::move(shape);
  return SoundValue(SoundPart::kSamples, input,
                    formats::SerializeWav({0.5f, -0.5f}, 16000));
}

TEST(SoundInputTest, GivesSamplesByChannels) {
  for (const auto& shape : {std::optional<Dims>(), std::optional(Dims{-1, -1}),
                            std::optional(Dims{2, 1})}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const runtime::Tensor value, Fed(shape));
    EXPECT_THAT(value.shape().dims(), ElementsAre(2, 1));
    EXPECT_THAT(value.flat<float>(), ElementsAre(0.5f, -0.5f));
  }
}

TEST(SoundInputTest, FollowsTheOneLongAxis) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(runtime::Tensor value, Fed(Dims{-1, 3}));
  EXPECT_THAT(value.shape().dims(), ElementsAre(1, 3));
  EXPECT_THAT(value.flat<float>(), ElementsAre(0.5f, -0.5f, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(value, Fed(Dims{1, -1, 1}));
  EXPECT_THAT(value.shape().dims(), ElementsAre(1, 2, 1));
  OPTFARM_ASSERT_OK_AND_ASSIGN(value, Fed(Dims{-1}));
  EXPECT_THAT(value.shape().dims(), ElementsAre(2));
}

TEST(SoundInputTest, SaysThatASoundIsNoPicture) {
  EXPECT_THAT(Fed(Dims{1, 128, 128, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("2 samples and 1 channels"),
                             HasSubstr("'sound'"), HasSubstr("[1,128,128,3]"),
                             HasSubstr("--calibration="))));
}

}  // namespace
}  // namespace optfarm::optimize
