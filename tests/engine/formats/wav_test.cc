#include "engine/formats/samples/wav.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Two mono samples, -32768 and 16384, at 16000 Hz.
std::string Wav() {
  return std::string(
      "RIFF\x28\0\0\0WAVE"
      "fmt \x10\0\0\0\1\0\1\0\x80\x3e\0\0\0\x7d\0\0\2\0\x10\0"
      "data\4\0\0\0\0\x80\0\x40",
      48);
}

TEST(WavTest, ReadsSamples) {
  const std::string wav = Wav();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const WavInfo info, ParseWav(wav));
  EXPECT_EQ(info.sample_rate, 16000);
  EXPECT_EQ(info.channels, 1);
  EXPECT_EQ(info.frames, 2);
  EXPECT_THAT(WavSamples(info), ElementsAre(-1.0f, 0.5f));
}

TEST(WavTest, ReadsWhatItWrote) {
  const std::string wav = SerializeWav({-1.0f, 0.0f, 0.5f, 2.0f}, 8000);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const WavInfo info, ParseWav(wav));
  EXPECT_EQ(info.sample_rate, 8000);
  EXPECT_THAT(WavSamples(info),
              ::testing::Pointwise(::testing::FloatNear(1e-4f),
                                   {-1.0f, 0.0f, 0.5f, 1.0f}));
}

TEST(WavTest, RefusesEveryTruncation) {
  const std::string wav = Wav();
  for (size_t length = 0; length < wav.size(); ++length) {
    EXPECT_FALSE(ParseWav(wav.substr(0, length)).ok()) << length;
  }
}

TEST(WavTest, RefusesOtherEncodings) {
  std::string wav = Wav();
  wav[34] = 8;
  EXPECT_THAT(ParseWav(wav), StatusIs(kInvalid, HasSubstr("16-bit PCM")));
  wav = Wav();
  wav[22] = 0;
  EXPECT_THAT(ParseWav(wav), StatusIs(kInvalid, HasSubstr("no channels")));
  EXPECT_THAT(ParseWav("RIFF"), StatusIs(kInvalid, HasSubstr("not a WAV")));
}

}  // namespace
}  // namespace optfarm::formats
