#include "engine/runtime/core/quantization.h"

#include <gtest/gtest.h>

namespace optfarm::runtime {
namespace {

TEST(QuantizationTest, ZeroLiesOnACode) {
  const Range range = {-0.3f, 1.1f};
  const uint8_t zero = Quantize<uint8_t>(0.0f, range);
  EXPECT_NEAR(Dequantizer<uint8_t>(range)(zero), 0.0f, 1e-6f);
}

TEST(QuantizationTest, RoundTripStaysWithinHalfAStep) {
  const Range range = {-2.0f, 6.0f};
  const float step = (range.max - range.min) / 255;
  const Dequantizer<uint8_t> dequantize(range);
  for (int i = 0; i <= 100; ++i) {
    const float x = -1.9f + 7.8f * static_cast<float>(i) / 100;
    EXPECT_NEAR(dequantize(Quantize<uint8_t>(x, range)), x, step * 0.5001f);
  }
}

// Twice rounded to single precision, as in TensorFlow: once would give
// -0.0988235325.
TEST(QuantizationTest, TheLowestValueIsRoundedBeforeCodesAreAdded) {
  const Dequantizer<uint8_t> dequantize({-0.1f, 0.2f});
  EXPECT_EQ(dequantize(1), -0.0988235399f);
}

TEST(QuantizationTest, ValuesOutsideTheRangeAreCut) {
  const Range range = {0.0f, 1.0f};
  EXPECT_EQ(Quantize<uint8_t>(-5.0f, range), 0);
  EXPECT_EQ(Quantize<uint8_t>(5.0f, range), 255);
  EXPECT_EQ(Quantize<uint8_t>(std::nanf(""), range), 0);
}

TEST(QuantizationTest, QuantizeRangeIsWidenedToContainZero) {
  const Range positive = WidenedForQuantize({2.0f, 3.0f});
  EXPECT_EQ(positive.min, 0.0f);
  EXPECT_EQ(positive.max, 3.0f);
  const Range negative = WidenedForQuantize({-3.0f, -2.0f});
  EXPECT_EQ(negative.min, -3.0f);
  EXPECT_EQ(negative.max, 0.0f);
  const Range point = WidenedForQuantize({0.0f, 0.0f});
  EXPECT_GT(point.max, point.min);
}

// One step of 32-bit values is 2^-10 here, one step of 8-bit values 4 / 255.
TEST(QuantizationTest, RequantizedCodeIsTheNearest) {
  const float bound = 2097152.0f;  // 2^31 * 2^-10
  const Range output = {-1.0f, 3.0f};
  const Requantizer requantize({-bound, bound}, output);
  for (int32_t q : {-1024, -1000, -1, 0, 1, 500, 1024, 3000, 3072}) {
    const double real = q / 1024.0;
    EXPECT_NEAR(requantize(q), std::round((real + 1.0) * 255 / 4), 1) << q;
  }
  EXPECT_EQ(requantize(INT32_MAX), 255);
  EXPECT_EQ(requantize(INT32_MIN), 0);
}

TEST(QuantizationTest, AnEmptyOutputRangeGivesNoOverflow) {
  const Requantizer requantize({-1e30f, 1e30f}, {0.0f, 0.0f});
  EXPECT_EQ(requantize(12345), 0);
}

}  // namespace
}  // namespace optfarm::runtime
