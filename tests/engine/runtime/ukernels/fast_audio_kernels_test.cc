// Fast spectrograms and mel frequency coefficients against the reference
// kernels, with each instruction set that this machine has.

#if defined(OPTFARM_FAST_KERNELS) && defined(__x86_64__)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/runtime/fusion/fast_kernels.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FastAudioTest : public FastKernelsTest {};

INSTANTIATE_TEST_SUITE_P(Sets, FastAudioTest,
                         ::testing::ValuesIn(InstructionSets()), SetName);

absl::StatusOr<Tensor> RunAudio(const GraphMaker& g,
                                const std::vector<Tensor>& inputs, bool is_fast,
                                int threads = 1) {
  auto result = RunGraph(g, inputs.size() == 1 ? "x" : "x,rate", inputs, "y",
                         is_fast, threads);
  if (!result.ok()) return result.status();
  return result->values[0];
}

// To within what one rounding to float can be.
void ExpectClose(const Tensor& got, const Tensor& wanted) {
  ExpectClose(got, wanted, {.relative = 1.2e-7f, .of_largest = 1e-12f});
}

GraphMaker SpectrogramGraph(int64_t window, int64_t stride, bool is_squared) {
  GraphMaker g;
  g.Placeholder("x", tensorflow::DT_FLOAT);
  g.Node("y", "AudioSpectrogram", {"x"})
      .Int("window_size", window)
      .Int("stride", stride)
      .Bool("magnitude_squared", is_squared);
  return g;
}

TEST_P(FastAudioTest, SpectrogramsOfManyWindowsAgree) {
  // Every number of passes; windows that fill their transform, blocks that do
  // not end with the window, a transform too small for the fast code.
  for (int64_t window :
       {30, 64, 65, 128, 250, 256, 480, 512, 640, 1000, 2048, 5000, 9000}) {
    for (int64_t channels : {1, 2}) {
      const GraphMaker g = SpectrogramGraph(window, window / 3, channels == 1);
      const Tensor audio = Random({4 * window + 5, channels}, -1, 1);
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor got,
                                   RunAudio(g, {audio}, true));
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor wanted,
                                   RunAudio(g, {audio}, false));
      SCOPED_TRACE(absl::StrCat(window, " samples, ", channels, " channels"));
      ExpectClose(got, wanted);
    }
  }
}

TEST_P(FastAudioTest, ThreadsAndShortAudioChangeNothing) {
  const GraphMaker g = SpectrogramGraph(480, 160, true);
  const Tensor audio = Random({16000, 1}, -1, 1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor one, RunAudio(g, {audio}, true));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor two, RunAudio(g, {audio}, true, 3));
  EXPECT_TRUE(std::equal(one.flat<float>().begin(), one.flat<float>().end(),
                         two.flat<float>().begin()));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor none,
                               RunAudio(g, {Random({479, 1}, -1, 1)}, true));
  EXPECT_EQ(none.shape(), Shape({1, 0, 257}));
}

TEST_P(FastAudioTest, SilenceAndNoNumberComeThroughTheSpectrogram) {
  const GraphMaker g = SpectrogramGraph(640, 640, false);
  Tensor audio = *Tensor::Zeros(tensorflow::DT_FLOAT, {1280, 1});
  audio.data<float>()[1000] = std::numeric_limits<float>::quiet_NaN();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, RunAudio(g, {audio}, true));
  for (int64_t i = 0; i < 513; ++i) {
    ASSERT_EQ(out.flat<float>()[i], 0) << i;
    ASSERT_TRUE(std::isnan(out.flat<float>()[513 + i])) << i;
  }
}

TEST_P(FastAudioTest, SpectrogramsOfNoMatrixAreRefused) {
  EXPECT_THAT(
      RunAudio(SpectrogramGraph(640, 640, true), {Random({1280}, 0, 1)}, true),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank")));
}

struct MelCase {
  float upper;
  float lower;
  int64_t bands;
  int64_t coefficients;
};

GraphMaker MelGraph(const MelCase& c) {
  GraphMaker g;
  g.Placeholder("x", tensorflow::DT_FLOAT);
  g.Placeholder("rate", tensorflow::DT_INT32);
  g.Node("y", "Mfcc", {"x", "rate"})
      .Int("filterbank_channel_count", c.bands)
      .Int("dct_coefficient_count", c.coefficients);
  tensorflow::NodeDef* node = g.def()->mutable_node(2);
  graph::SetFloat(node, "upper_frequency_limit", c.upper);
  graph::SetFloat(node, "lower_frequency_limit", c.lower);
  return g;
}

TEST_P(FastAudioTest, CoefficientsOfManyBandsAgree) {
  // The second has bands without a bin, the third bins below all bands.
  for (const MelCase& c :
       {MelCase{4000, 20, 40, 13}, MelCase{7600, 125, 300, 20},
        MelCase{3000, 1000, 5, 5}, MelCase{4000, 20, 40, 1}}) {
    const GraphMaker g = MelGraph(c);
    for (int64_t slices : {1, 4, 8, 49}) {
      Tensor spectrum = Random({2, slices, 513}, 0, 100);
      // Silence, and what is no sum of squares.
      std::fill_n(spectrum.data<float>(), 513, 0.0f);
      if (slices > 4) {
        float* values = spectrum.data<float>() + 2 * 513 + 100;
        values[0] = std::numeric_limits<float>::infinity();
        values[513] = std::numeric_limits<float>::quiet_NaN();
        values[2 * 513] = -1;
      }
      const std::vector<Tensor> inputs = {spectrum,
                                          Tensor::Scalar<int32_t>(16000)};
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor got, RunAudio(g, inputs, true));
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor wanted,
                                   RunAudio(g, inputs, false));
      SCOPED_TRACE(absl::StrCat(c.bands, " bands of ", slices, " slices"));
      ExpectClose(got, wanted);
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor threads,
                                   RunAudio(g, inputs, true, 3));
      ExpectClose(threads, got);
    }
  }
}

TEST_P(FastAudioTest, ASliceHasTheSameCoefficientsAloneAndAmongOthers) {
  constexpr int64_t kSlices = 19, kBins = 257, kCoefficients = 13;
  const GraphMaker g = MelGraph({4000, 20, 40, kCoefficients});
  Tensor all = Random({1, kSlices, kBins}, 0, 100);
  float* values = all.data<float>();
  std::fill_n(values + 8 * kBins, kBins, 0.0f);
  values[9 * kBins + 50] = std::numeric_limits<float>::infinity();
  values[10 * kBins + 60] = std::numeric_limits<float>::quiet_NaN();
  const Tensor rate = Tensor::Scalar<int32_t>(16000);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor wanted,
                               RunAudio(g, {all, rate}, true));
  for (int64_t slices = 1; slices < kSlices; ++slices) {
    for (int64_t first : {int64_t{0}, kSlices - slices}) {
      SCOPED_TRACE(absl::StrCat(slices, " slices from ", first));
      const float* from = values + first * kBins;
      const Tensor some = Tensor::FromValues<float>(
          {1, slices, kBins}, std::vector<float>(from, from + slices * kBins));
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor got,
                                   RunAudio(g, {some, rate}, true));
      EXPECT_EQ(
          std::memcmp(got.raw(), wanted.data<float>() + first * kCoefficients,
                      got.TotalBytes()),
          0);
    }
  }
}

TEST_P(FastAudioTest, AnotherRateOrSizeHasBandsOfItsOwn) {
  const GraphMaker g = MelGraph({3000, 20, 20, 10});
  SessionOptions options;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto fast,
                               g.Session("x,rate", "y", options));
  for (const auto& [bins, rate] : std::vector<std::pair<int64_t, int32_t>>{
           {257, 16000}, {257, 8000}, {129, 8000}, {257, 16000}}) {
    const std::vector<Tensor> inputs = {Random({1, 3, bins}, 0, 1),
                                        Tensor::Scalar<int32_t>(rate)};
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto got, fast->Run(inputs));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor wanted,
                                 RunAudio(g, inputs, false));
    ExpectClose(got[0], wanted);
  }
}

GraphMaker SoundGraph(int64_t window, int64_t stride, bool is_squared,
                      const MelCase& c) {
  GraphMaker g = SpectrogramGraph(window, stride, is_squared);
  g.def()->mutable_node(1)->set_name("spectrum");
  g.Placeholder("rate", tensorflow::DT_INT32);
  g.Node("y", "Mfcc", {"spectrum", "rate"})
      .Int("filterbank_channel_count", c.bands)
      .Int("dct_coefficient_count", c.coefficients);
  tensorflow::NodeDef* node = g.def()->mutable_node(3);
  graph::SetFloat(node, "upper_frequency_limit", c.upper);
  graph::SetFloat(node, "lower_frequency_limit", c.lower);
  return g;
}

TEST_P(FastAudioTest, CoefficientsOfSoundAgree) {
  // The lower half of the spectrum, all of it, bands that end and begin within
  // a vector; slices that fill a vector and that do not.
  const std::vector<MelCase> cases = {{4000, 20, 40, 13},
                                      {7600, 125, 30, 20},
                                      {3000, 1000, 5, 5},
                                      {4100, 3000, 4, 3}};
  for (int64_t window : {65, 250, 256, 480, 640, 1000, 1100, 9000}) {
    for (const MelCase& c : cases) {
      for (int64_t channels : {1, 2}) {
        const GraphMaker g = SoundGraph(window, window / 2, channels == 1, c);
        SCOPED_TRACE(absl::StrCat(window, " samples up to ", c.upper, " Hz, ",
                                  channels, " channels"));
        const std::vector<Tensor> inputs = {
            Random({5 * window + 3, channels}, -1, 1),
            Tensor::Scalar<int32_t>(16000)};
        OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor wanted,
                                     RunAudio(g, inputs, false));
        for (int threads : {1, 3}) {
          OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor got,
                                       RunAudio(g, inputs, true, threads));
          // A power that rounds to the next float moves what cancels out.
          ExpectClose(got, wanted, {.relative = 1.2e-7f, .of_largest = 1e-8f});
        }
      }
    }
  }
}

TEST_P(FastAudioTest, CoefficientsWithoutASpectrogramAreTheSame) {
  const GraphMaker g = SoundGraph(640, 320, true, {4000, 20, 40, 10});
  const std::vector<Tensor> inputs = {Random({16000, 1}, -1, 1),
                                      Tensor::Scalar<int32_t>(16000)};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Result alone,
                               RunGraph(g, "x,rate", inputs, "y", true));
  EXPECT_THAT(alone.ops, ElementsAre("AudioSpectrogram+Mfcc"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Result both, RunGraph(g, "x,rate", inputs, "y,spectrum", true));
  EXPECT_EQ(both.values[1].shape(), Shape({1, 49, 513}));
  EXPECT_THAT(both.ops, ElementsAre("AudioSpectrogram", "Mfcc"));
  const Tensor& got = alone.values[0];
  EXPECT_EQ(std::memcmp(got.raw(), both.values[0].raw(), got.TotalBytes()), 0);
}

TEST_P(FastAudioTest, SilentAndShortSoundsHaveCoefficients) {
  const GraphMaker g = SoundGraph(640, 640, true, {4000, 20, 40, 10});
  Tensor audio = *Tensor::Zeros(tensorflow::DT_FLOAT, {1280, 1});
  audio.data<float>()[1000] = std::numeric_limits<float>::quiet_NaN();
  const Tensor rate = Tensor::Scalar<int32_t>(16000);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor got,
                               RunAudio(g, {audio, rate}, true));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor wanted,
                               RunAudio(g, {audio, rate}, false));
  ExpectClose(got, wanted, {.relative = 1.2e-7f, .of_largest = 1e-12f});
  EXPECT_TRUE(std::isnan(got.flat<float>()[10]));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor none, RunAudio(g, {Random({639, 1}, -1, 1), rate}, true));
  EXPECT_EQ(none.shape(), Shape({1, 0, 10}));
}

TEST_P(FastAudioTest, SoundThatIsNoMatrixIsRefused) {
  EXPECT_THAT(
      RunAudio(SoundGraph(640, 640, true, {4000, 20, 40, 10}),
               {Random({1280}, 0, 1), Tensor::Scalar<int32_t>(16000)}, true),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank")));
}

TEST_P(FastAudioTest, BandsBeyondTheSpectrumAreRefused) {
  EXPECT_THAT(
      RunAudio(MelGraph({9000, 20, 40, 13}),
               {Random({1, 1, 129}, 0, 1), Tensor::Scalar<int32_t>(16000)},
               true),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("upper_frequency_limit 9000")));
}

}  // namespace
}  // namespace optfarm::runtime
#endif
