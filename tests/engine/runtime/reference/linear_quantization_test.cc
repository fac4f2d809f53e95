// QuantizeLinear and DequantizeLinear, with values computed by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Q>
Tensor Zero(Q value) {
  return Tensor::Scalar<Q>(value);
}

Op Quantize() {
  Op made("QuantizeLinear");
  made.Type("T", tensorflow::DT_FLOAT);
  return made;
}

TEST(QuantizeLinearTest, RoundsHalvesToEvenAndSaturates) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Quantize()
          .In(Floats({7}, {-1000, -0.75f, -0.25f, 0.25f, 0.75f, 1.25f, 1000}))
          .In(Float(0.5f))
          .In(Zero<int8_t>(3))
          .Run());
  EXPECT_THAT(ValuesOf<int8_t>(y), ElementsAre(-128, 1, 3, 3, 5, 5, 127));
}

TEST(QuantizeLinearTest, KnowsTheTypesOfQuantizedValues) {
  const Tensor x = Floats({3}, {-1e6f, 1.5f, 1e6f});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor bytes,
      Quantize().In(x).In(Float(1)).In(Zero<uint8_t>(128)).Run());
  EXPECT_THAT(ValuesOf<uint8_t>(bytes), ElementsAre(0, 130, 255));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor words,
      Quantize().In(x).In(Float(1)).In(Zero<int16_t>(0)).Run());
  EXPECT_THAT(ValuesOf<int16_t>(words), ElementsAre(-32768, 2, 32767));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor wide,
      Quantize().In(x).In(Float(0.25f)).In(Zero<int32_t>(1)).Run());
  EXPECT_THAT(ValuesOf<int32_t>(wide), ElementsAre(-3999999, 7, 4000001));
}

// 200 * 0.498 is 99.6, but 0.498 is rounded to 127 / 256.
TEST(QuantizeLinearTest, RatioOfTwoScalesHasEightBits) {
  const std::vector<float> steps = {0, 1, 2, 200, -200, 1000};
  std::vector<float> x;
  for (float step : steps) x.push_back(step * 0.498f);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y, Quantize()
                                                   .Float("input_scale", 0.498f)
                                                   .In(Floats({6}, x))
                                                   .In(Float(1))
                                                   .In(Zero<uint8_t>(100))
                                                   .Run());
  EXPECT_THAT(ValuesOf<uint8_t>(y), ElementsAre(100, 100, 101, 199, 1, 255));
}

// 0.75 / 0.5: a step becomes 1.5, and halves go up.
TEST(QuantizeLinearTest, BetweenTwoScalesHalvesGoUp) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Quantize()
          .Float("input_scale", 0.75f)
          .In(Floats({6}, {0.75f, -0.75f, 2.25f, -2.25f, -1000, nan}))
          .In(Float(0.5f))
          .In(Zero<int8_t>(3))
          .Run());
  EXPECT_THAT(ValuesOf<int8_t>(y), ElementsAre(5, 2, 8, -1, -128, -128));
}

TEST(QuantizeLinearTest, HalvesGoUpOrAwayFromTheValueZero) {
  const Tensor x = Floats({5}, {126.5f, 127.5f, 128.5f, 129.5f, 127.25f});
  const auto rounded = [&](const char* rounding) {
    return ValuesOf<int8_t>(*Quantize()
                                 .Text("rounding", rounding)
                                 .In(x)
                                 .In(Float(1))
                                 .In(Zero<int8_t>(-128))
                                 .Run());
  };
  EXPECT_THAT(rounded("half_away"), ElementsAre(-2, -1, 1, 2, -1));
  EXPECT_THAT(rounded("half_up"), ElementsAre(-1, 0, 1, 2, -1));
  EXPECT_THAT(rounded("half_to_even"), ElementsAre(-2, 0, 0, 2, -1));
}

TEST(QuantizeLinearTest, OtherRoundingIsForBytesAndOneScale) {
  EXPECT_THAT(Quantize()
                  .Float("input_scale", 1)
                  .In(Floats({1}, {1}))
                  .In(Float(1))
                  .In(Zero<int16_t>(0))
                  .Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("int8 or uint8 with one scale")));
  EXPECT_THAT(Quantize()
                  .Float("input_scale", -1)
                  .In(Floats({1}, {1}))
                  .In(Float(1))
                  .In(Zero<int8_t>(0))
                  .Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("scales above 0")));
}

TEST(QuantizeLinearTest, FourBitsTravelInEight) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y, Quantize()
                                                   .Int("bits", 4)
                                                   .In(Floats({3}, {-9, 3, 9}))
                                                   .In(Float(1))
                                                   .In(Zero<int8_t>(0))
                                                   .Run());
  EXPECT_THAT(ValuesOf<int8_t>(y), ElementsAre(-8, 3, 7));
}

TEST(QuantizeLinearTest, NotANumberBecomesTheLeast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y, Quantize()
                                                   .In(Floats({1}, {nan}))
                                                   .In(Float(1))
                                                   .In(Zero<uint8_t>(7))
                                                   .Run());
  EXPECT_THAT(ValuesOf<uint8_t>(y), ElementsAre(0));
}

// The formula in doubles, on values that are halves and far beyond all ends,
// for tensors longer than what kernels work on at a time.
TEST(QuantizeLinearTest, LongTensorsFollowTheFormulaInEachRounding) {
  constexpr int kCount = 1000;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {-kInfinity, kInfinity, -1e30f, 1e30f,
                          -6e6f,      6e6f,      -9e6f,  9e6f};
  for (int i = 0; static_cast<int>(x.size()) < kCount; ++i) {
    x.push_back(static_cast<float>(i - kCount / 2) * 0.375f);
  }
  const auto wanted = [&](double (*round)(double)) {
    std::vector<int8_t> values;
    for (const float v : x) {
      const double steps = std::clamp(double{v} / 0.75 - 20, -300.0, 300.0);
      values.push_back(
          static_cast<int8_t>(std::clamp(round(steps), -128.0, 127.0)));
    }
    return values;
  };
  const auto rounded = [&](const char* rounding) {
    return ValuesOf<int8_t>(*Quantize()
                                 .Text("rounding", rounding)
                                 .In(Floats({kCount}, x))
                                 .In(Float(0.75f))
                                 .In(Zero<int8_t>(-20))
                                 .Run());
  };
  EXPECT_EQ(rounded("half_to_even"),
            wanted([](double v) { return std::nearbyint(v); }));
  EXPECT_EQ(rounded("half_up"),
            wanted([](double v) { return std::floor(v + 0.5); }));
  EXPECT_EQ(rounded("half_away"),
            wanted([](double v) { return std::round(v); }));
}

// A scale for each index of the axis, which counts from the end.
TEST(LinearQuantizationTest, HasAScaleForEachChannel) {
  const Tensor scale = Floats({2}, {1, 10});
  const int8_t zero_points[] = {0, 1};
  const Tensor zero = Tensor::FromValues<int8_t>({2}, zero_points);
  const Tensor x = Floats({2, 2, 1}, {1, 20, 3, 40});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      Quantize().Int("axis", -2).In(x).In(scale).In(zero).Run());
  EXPECT_THAT(ValuesOf<int8_t>(y), ElementsAre(1, 3, 3, 5));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor back,
      Op("DequantizeLinear").Int("axis", 1).In(y).In(scale).In(zero).Run());
  EXPECT_THAT(ValuesOf<float>(back), ElementsAre(1, 20, 3, 40));
}

TEST(DequantizeLinearTest, SubtractsBeforeItScales) {
  const int32_t values[] = {std::numeric_limits<int32_t>::max(), -1};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y,
                               Op("DequantizeLinear")
                                   .In(Tensor::FromValues<int32_t>({2}, values))
                                   .In(Float(0.5f))
                                   .In(Zero<int32_t>(-1))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(1073741824.0f, 0.0f));
}

TEST(LinearQuantizationTest, RefusesParametersThatDoNotFit) {
  const Tensor x = Floats({2, 2}, {1, 2, 3, 4});
  const int8_t zeros[] = {0, 0, 0};
  EXPECT_THAT(Quantize()
                  .In(x)
                  .In(Floats({3}, {1, 1, 1}))
                  .In(Tensor::FromValues<int8_t>({3}, zeros))
                  .Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'scale' has 3 elements")));
  EXPECT_THAT(Quantize()
                  .In(x)
                  .In(Float(1))
                  .In(Tensor::FromValues<int8_t>({3}, zeros))
                  .Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("vectors of one size")));
}

}  // namespace
}  // namespace optfarm::runtime
