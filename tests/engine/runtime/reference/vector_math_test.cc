// Values recorded from the instructions that TensorFlow 1.4 uses on x86.

#include "engine/runtime/reference/math/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace optfarm::runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(VectorMathTest, RsqrtHasTheErrorOfOneNewtonStep) {
  EXPECT_EQ(VectorRsqrt(1.0f), 0x1.fffffep-1f);  // not 1
  EXPECT_EQ(VectorRsqrt(2.0f), 0x1.6a09e4p-1f);
  EXPECT_EQ(VectorRsqrt(0.1f), 0x1.94c582p+1f);
  EXPECT_EQ(VectorRsqrt(12345.678f), 0x1.26e97ap-7f);
}

TEST(VectorMathTest, RsqrtIsCloseForAllMagnitudes) {
  for (float x = 1.2e-38f; x < 1e38f; x *= 1.37f) {
    const double exact = 1 / std::sqrt(double{x});
    EXPECT_NEAR(VectorRsqrt(x), exact, 2.5e-7 * exact) << x;
  }
}

TEST(VectorMathTest, RsqrtOfWhatIsNotPositive) {
  EXPECT_EQ(VectorRsqrt(0.0f), kInfinity);
  EXPECT_EQ(VectorRsqrt(kInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(VectorRsqrt(-1.0f)));
  EXPECT_TRUE(std::isnan(VectorRsqrt(kNan)));
}

TEST(VectorMathTest, ExpIsCloseWhereItsResultIsNormal) {
  for (float x = -86.0f; x < 88.0f; x += 0.37f) {
    const double exact = std::exp(double{x});
    EXPECT_NEAR(VectorExp(x), exact, 3e-7 * exact) << x;
  }
}

TEST(VectorMathTest, ExpOfWhatLiesOutside) {
  EXPECT_EQ(VectorExp(-1000.0f), 0.0f);
  EXPECT_EQ(VectorExp(-kInfinity), 0.0f);
  EXPECT_GT(VectorExp(1000.0f), 1e38f);
  EXPECT_EQ(VectorExp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(VectorExp(kNan)));
}

TEST(VectorMathTest, OnlyWholeVectorsUseTheEstimate) {
  const std::vector<float> in(kVectorLanes + 1, 1.0f);
  std::vector<float> out(in.size());
  RsqrtOfArray(in.data(), kVectorLanes + 1, out.data());
  EXPECT_EQ(out[kVectorLanes - 1], 0x1.fffffep-1f);
  EXPECT_EQ(out[kVectorLanes], 1.0f);
}

TEST(VectorMathTest, SigmoidMayOverwriteItsInput) {
  // The rational function that other versions use gives 0x1.c281fap-1 here.
  std::vector<float> values(kVectorLanes + 3, 1.99146342f);
  SigmoidOfArray(values.data(), kVectorLanes + 3, values.data());
  for (float value : values) EXPECT_EQ(value, 0x1.c281f8p-1f);
}

}  // namespace
}  // namespace optfarm::runtime
