// Layers that ONNX and TensorFlow Lite have: small cases by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Tensor None() { return Floats({0}, {}); }
Tensor NoLengths() { return Ints(Shape({0}), {}); }

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// --- Recurrent layers --------------------------------------------------------

// One input, one cell, all weights 1: a gate's sum is x + h.
Op UnitLstm(const Tensor& x, const Tensor& lengths) {
  Op op("LstmSequence");
  op.Int("hidden_size", 1).Text("direction", "forward");
  op.In(x).In(Floats({1, 4, 1}, {1, 1, 1, 1}));
  op.In(Floats({1, 4, 1}, {1, 1, 1, 1})).In(None()).In(lengths);
  op.In(None()).In(None()).In(None());
  return op;
}

TEST(LstmSequenceTest, FollowsItsEquations) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> out,
      UnitLstm(Floats({2, 1, 1}, {0.5f, -1}), NoLengths()).RunAll(3));
  const float c1 = Sigmoid(0.5f) * std::tanh(0.5f);
  const float h1 = Sigmoid(0.5f) * std::tanh(c1);
  const float sum = -1 + h1;
  const float c2 = Sigmoid(sum) * c1 + Sigmoid(sum) * std::tanh(sum);
  const float h2 = Sigmoid(sum) * std::tanh(c2);
  EXPECT_THAT(ValuesOf<float>(out[0]), Pointwise(FloatNear(1e-6f), {h1, h2}));
  EXPECT_THAT(ValuesOf<float>(out[1]), Pointwise(FloatNear(1e-6f), {h2}));
  EXPECT_THAT(ValuesOf<float>(out[2]), Pointwise(FloatNear(1e-6f), {c2}));
}

TEST(LstmSequenceTest, ASequenceThatEndsKeepsItsStateAndGivesZeros) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> out,
      UnitLstm(Floats({2, 2, 1}, {0.5f, 0.5f, -1, -1}), Ints({2, 1}))
          .RunAll(3));
  const std::vector<float> y = ValuesOf<float>(out[0]);
  EXPECT_EQ(y[0], y[1]);
  EXPECT_NE(y[2], 0);
  EXPECT_EQ(y[3], 0);
  EXPECT_EQ(ValuesOf<float>(out[1])[1], y[1]);
}

TEST(LstmSequenceTest, RefusesWeightsThatDoNotFit) {
  Op op("LstmSequence");
  op.Int("hidden_size", 2).In(Floats({1, 1, 1}, {0}));
  op.In(Floats({1, 4, 1}, {1, 1, 1, 1})).In(Floats({1, 4, 1}, {1, 1, 1, 1}));
  op.In(None()).In(NoLengths()).In(None()).In(None()).In(None());
  EXPECT_FALSE(op.RunAll(3).ok());
}

TEST(GruSequenceTest, ResetsTheStateBeforeOrBehindItsProduct) {
  for (const bool behind : {false, true}) {
    Op op("GruSequence");
    op.Int("hidden_size", 1).Bool("linear_before_reset", behind);
    op.In(Floats({1, 1, 1}, {0.25f})).In(Floats({1, 3, 1}, {1, 1, 1}));
    op.In(Floats({1, 3, 1}, {1, 1, 2}));
    // The hidden gate's recurrent bias is reset too if it is behind.
    op.In(Floats({1, 6}, {0, 0, 0, 0, 0, 0.5f})).In(NoLengths());
    op.In(Floats({1, 1, 1}, {0.5f}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out, op.RunAll(2));
    const float z = Sigmoid(0.75f);
    const float hidden = behind ? std::tanh(0.25f + z * (1.0f + 0.5f))
                                : std::tanh(0.25f + 2 * z * 0.5f + 0.5f);
    EXPECT_NEAR(ValuesOf<float>(out[1])[0], (1 - z) * hidden + z * 0.5f, 1e-6);
  }
}

TEST(RnnSequenceTest, RunsBackwardsAndBothWays) {
  Op op("RnnSequence");
  op.Int("hidden_size", 1).Text("direction", "bidirectional");
  op.In(Floats({2, 1, 1}, {1, 2})).In(Floats({2, 1, 1}, {0.1f, 0.1f}));
  op.In(Floats({2, 1, 1}, {0, 0})).In(None()).In(NoLengths()).In(None());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out, op.RunAll(2));
  const float a = std::tanh(0.1f), b = std::tanh(0.2f);
  EXPECT_THAT(ValuesOf<float>(out[0]),
              Pointwise(FloatNear(1e-6f), {a, a, b, b}));
  EXPECT_THAT(ValuesOf<float>(out[1]), Pointwise(FloatNear(1e-6f), {b, a}));
}

// --- Windows -----------------------------------------------------------------

TEST(Conv2DTransposeTest, SpreadsPixelsOverTheirWindows) {
  Op op("Conv2DTranspose");
  op.Ints("strides", {1, 2, 2, 1}).In(Floats({1, 1, 2, 1}, {1, 2}));
  op.In(Floats({1, 3, 1, 1}, {1, 10, 100}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y, op.Run());
  EXPECT_EQ(y.shape(), Shape({1, 1, 5, 1}));
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(1, 10, 102, 20, 200));
}

TEST(Conv2DTransposeTest, PadsTakeOffAndOutputPaddingAdds) {
  Op op("Conv2DTranspose");
  op.Ints("strides", {1, 1, 2, 1}).Ints("output_padding", {0, 1});
  op.Ints("explicit_paddings", {0, 0, 0, 0, 1, 1, 0, 0});
  op.In(Floats({1, 1, 2, 1}, {1, 2}));
  op.In(Floats({1, 3, 1, 1}, {1, 10, 100}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y, op.Run());
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(10, 102, 20, 200));
}

TEST(Conv2DTransposeTest, GroupsHaveFiltersOfTheirOwn) {
  Op op("Conv2DTranspose");
  op.Int("groups", 2).In(Floats({1, 1, 1, 2}, {3, 5}));
  op.In(Floats({1, 1, 1, 2}, {10, 100}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y, op.Run());
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(30, 500));
}

Op Pool(const std::string& kind, const std::vector<int64_t>& kernel,
        const std::vector<int64_t>& strides, const std::vector<int64_t>& pads) {
  Op op("WindowPool");
  op.Text("kind", kind).Ints("kernel", kernel).Ints("strides", strides);
  op.Ints("dilations", std::vector<int64_t>(kernel.size(), 1));
  op.Ints("pads", pads);
  return op;
}

TEST(WindowPoolTest, FindsMaximaAndTheirPlaces) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out,
                               Pool("MAX", {2, 2}, {1, 1}, {0, 0, 0, 0})
                                   .In(Floats({1, 1, 2, 3}, {1, 5, 2, 3, 4, 6}))
                                   .RunAll(2));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(5, 6));
  EXPECT_THAT(ValuesOf<int64_t>(out[1]), ElementsAre(1, 5));
}

TEST(WindowPoolTest, AveragesCountPadsOnRequest) {
  for (const bool counts : {false, true}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out,
                                 Pool("AVERAGE", {2}, {1}, {1, 0})
                                     .Bool("count_include_pad", counts)
                                     .In(Floats({1, 1, 2}, {4, 8}))
                                     .RunAll(2));
    EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(counts ? 2 : 4, 6));
  }
}

TEST(WindowPoolTest, RoundsTheNumberOfPlacesUpWithinTheImage) {
  Op op = Pool("MAX", {2}, {2}, {0, 0}).Bool("ceil_mode", true);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out,
                               op.In(Floats({1, 1, 3}, {1, 2, 3})).RunAll(2));
  EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(2, 3));
}

TEST(WindowPoolTest, RoundedUpOneWindowMayBeLargerThanTheImage) {
  for (const char* kind : {"MAX", "AVERAGE"}) {
    Op op = Pool(kind, {3}, {2}, {0, 0}).Bool("ceil_mode", true);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> out,
                                 op.In(Floats({1, 1, 2}, {5, 5})).RunAll(2));
    EXPECT_THAT(ValuesOf<float>(out[0]), ElementsAre(5));
  }
  EXPECT_THAT(
      Pool("MAX", {4}, {2}, {0, 0})
          .Bool("ceil_mode", true)
          .In(Floats({1, 1, 2}, {5, 5}))
          .RunAll(2),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("window")));
}

// --- Resize ------------------------------------------------------------------

Op Resize(const std::string& mode, const std::string& coordinates,
          const Tensor& x, const std::vector<float>& scales) {
  Op op("Resize");
  op.Text("mode", mode).Text("coordinates", coordinates);
  op.In(x).In(None());
  op.In(Floats({static_cast<int64_t>(scales.size())}, scales));
  op.In(Tensor::FromValues<int64_t>(Shape({0}), {}));
  return op;
}

TEST(ResizeTest, RepeatsPixels) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Resize("nearest", "asymmetric", Floats({1, 2}, {1, 2}), {2, 2})
          .Text("nearest_mode", "floor")
          .Run());
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(1, 1, 2, 2, 1, 1, 2, 2));
}

TEST(ResizeTest, InterpolatesByEachRuleOfCoordinates) {
  const Tensor x = Floats({2}, {0, 4});
  struct Case {
    const char* coordinates;
    std::vector<float> values;
  };
  for (const Case& c :
       std::vector<Case>{{"half_pixel", {0, 1, 3, 4}},
                         {"align_corners", {0, 4.0f / 3, 8.0f / 3, 4}},
                         {"asymmetric", {0, 2, 4, 4}}}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y,
                                 Resize("linear", c.coordinates, x, {2}).Run());
    EXPECT_THAT(ValuesOf<float>(y), Pointwise(FloatNear(1e-6f), c.values))
        << c.coordinates;
  }
}

TEST(ResizeTest, AlignsCornersOfTheSizeBeforeItIsRoundedDown) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Resize("linear", "align_corners", Floats({4}, {1, 2, 3, 4}), {0.6f})
          .Run());
  // Of 2.4 elements there are 2: steps of 3 / 1.4.
  EXPECT_THAT(ValuesOf<float>(y),
              Pointwise(FloatNear(1e-5f), {1.0f, 1.0f + 3.0f / 1.4f}));
}

TEST(ResizeTest, CubicWeightsOfAConstantAddUpToIt) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Resize("cubic", "half_pixel", Floats({4}, {3, 3, 3, 3}), {1.5f}).Run());
  EXPECT_THAT(ValuesOf<float>(y),
              Pointwise(FloatNear(1e-6f), std::vector<float>(6, 3)));
}

TEST(ResizeTest, RefusesScalesThatAreNone) {
  EXPECT_FALSE(
      Resize("linear", "half_pixel", Floats({2}, {0, 4}), {-1}).Run().ok());
  EXPECT_FALSE(
      Resize("linear", "half_pixel", Floats({2}, {0, 4}), {1, 1}).Run().ok());
}

}  // namespace
}  // namespace optfarm::runtime
