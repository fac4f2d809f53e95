// DecodeWav, AudioSpectrogram and Mfcc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string Number(uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text.push_back(static_cast<char>(value >> (8 * i)));
  }
  return text;
}

std::string WavOf(int channels, int bits, const std::string& samples) {
  const std::string format = Number(1, 2) + Number(channels, 2) +
                             Number(16000, 4) + Number(32000 * channels, 4) +
                             Number(2 * channels, 2) + Number(bits, 2);
  const std::string body =
      "WAVEfmt " + Number(16, 4) + format + "LIST" + Number(2, 4) + "ab" +
      "data" + Number(static_cast<uint32_t>(samples.size()), 4) + samples;
  return "RIFF" + Number(static_cast<uint32_t>(body.size()), 4) + body;
}

Op Decode(const std::string& wav) {
  return Op("DecodeWav").In(Tensor::Scalar<std::string>(wav));
}

TEST(DecodeWavTest, CodesBecomeFractionsOfFullScale) {
  const std::string samples = Number(0x4000, 2) + Number(0x8000, 2);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               Decode(WavOf(1, 16, samples)).RunAll(2));
  EXPECT_EQ(out[0].shape(), Shape({2, 1}));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(0.5f, -1));
  EXPECT_THAT(ValuesOf<int32_t>(out[1]), ElementsAre(16000));
}

TEST(DecodeWavTest, MissingSamplesAreSilenceAndMissingChannelsCopies) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               Decode(WavOf(1, 16, Number(0x4000, 2)))
                                   .Int("desired_channels", 2)
                                   .Int("desired_samples", 2)
                                   .RunAll(2));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(0.5f, 0.5f, 0, 0));
}

TEST(DecodeWavTest, BadFilesAreErrors) {
  const std::string good = WavOf(1, 16, Number(1, 2));
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_THAT(Decode(good.substr(0, length)).RunAll(2),
                StatusIs(kInvalid, HasSubstr("WAV")))
        << length;
  }
  EXPECT_THAT(Decode("not a wav file at all").RunAll(2),
              StatusIs(kInvalid, HasSubstr("RIFF")));
  EXPECT_THAT(Decode(WavOf(1, 8, "ab")).RunAll(2),
              StatusIs(kInvalid, HasSubstr("8 bits")));
  EXPECT_THAT(Decode(WavOf(0, 16, "ab")).RunAll(2),
              StatusIs(kInvalid, HasSubstr("0 channels")));
}

Op Spectrogram(const Tensor& audio) {
  return Op("AudioSpectrogram")
      .Int("window_size", 8)
      .Int("stride", 4)
      .Bool("magnitude_squared", true)
      .In(audio);
}

TEST(AudioSpectrogramTest, IsTheFourierTransformOfTheWindowedSlices) {
  const Tensor audio = Scattered({14, 1}, 3);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, Spectrogram(audio).Run());
  ASSERT_EQ(out.shape(), Shape({1, 2, 5}));
  for (int64_t slice = 0; slice < 2; ++slice) {
    for (int64_t bin = 0; bin < 5; ++bin) {
      double re = 0;
      double im = 0;
      for (int64_t i = 0; i < 8; ++i) {
        const double window =
            0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(i) / 8);
        const double x = audio.data<float>()[slice * 4 + i] * window;
        const double angle = 2 * std::numbers::pi * double(i) * double(bin) / 8;
        re += x * std::cos(angle);
        im -= x * std::sin(angle);
      }
      EXPECT_NEAR(out.data<float>()[slice * 5 + bin], re * re + im * im, 1e-6);
    }
  }
}

TEST(AudioSpectrogramTest, ShortAudioHasNoSlices) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Spectrogram(Counted({7, 1})).Run());
  EXPECT_EQ(out.shape(), Shape({1, 0, 5}));
}

TEST(AudioSpectrogramTest, WindowMustBeSensible) {
  EXPECT_THAT(Op("AudioSpectrogram")
                  .Int("window_size", int64_t{1} << 40)
                  .Int("stride", 1)
                  .In(Counted({1, 1}))
                  .Run(),
              StatusIs(kInvalid, HasSubstr("window_size")));
}

// 513 bins of 16 kHz audio, all of one magnitude.
Op Mfcc(float magnitude) {
  return Op("Mfcc")
      .Float("upper_frequency_limit", 4000)
      .Float("lower_frequency_limit", 20)
      .Int("filterbank_channel_count", 40)
      .Int("dct_coefficient_count", 3)
      .In(*Op("Fill").In(Ints({1, 1, 513})).In(Float(magnitude)).Run())
      .In(Int(16000));
}

TEST(MfccTest, SilenceHasOneCoefficient) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, Mfcc(0).Run());
  // sqrt(2 / 40) * 40 * log(1e-12)
  EXPECT_NEAR(out.data<float>()[0], -247.1394, 1e-3);
  EXPECT_NEAR(out.data<float>()[1], 0, 1e-4);
}

TEST(MfccTest, LouderMovesOnlyTheFirstCoefficient) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor one, Mfcc(1).Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor two, Mfcc(4).Run());
  EXPECT_NEAR(two.data<float>()[0] - one.data<float>()[0],
              std::sqrt(2.0 / 40) * 40 * std::log(2.0), 1e-4);
  EXPECT_NEAR(two.data<float>()[1], one.data<float>()[1], 1e-4);
}

TEST(MfccTest, FrequenciesMustLieWithinTheSpectrum) {
  EXPECT_THAT(Op("Mfcc")
                  .Float("upper_frequency_limit", 9000)
                  .In(Counted({1, 1, 129}))
                  .In(Int(16000))
                  .Run(),
              StatusIs(kInvalid, HasSubstr("upper_frequency_limit 9000")));
}

}  // namespace
}  // namespace optfarm::runtime
