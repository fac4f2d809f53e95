// half and bfloat16: conversions at the edges of their ranges, and ops that
// compute through float.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/runtime/core/half.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Halves(const std::vector<float>& values, DataType dtype) {
  return *FloatAsHalf(Floats({static_cast<int64_t>(values.size())}, values),
                      dtype);
}

TEST(HalfTest, EveryCodeSurvivesTheWayThroughFloat) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const uint16_t half = static_cast<uint16_t>(code);
    if (std::isnan(HalfToFloat(half))) continue;
    ASSERT_EQ(FloatToHalf(HalfToFloat(half)), half);
  }
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const uint16_t bfloat = static_cast<uint16_t>(code);
    if (std::isnan(BfloatToFloat(bfloat))) continue;
    ASSERT_EQ(FloatToBfloat(BfloatToFloat(bfloat)), bfloat);
  }
}

TEST(HalfTest, RoundsHalvesToTheEvenNeighbour) {
  EXPECT_EQ(HalfToFloat(FloatToHalf(2049.0f)), 2048.0f);
  EXPECT_EQ(HalfToFloat(FloatToHalf(2051.0f)), 2052.0f);
  EXPECT_EQ(BfloatToFloat(FloatToBfloat(257.0f)), 256.0f);
  EXPECT_EQ(BfloatToFloat(FloatToBfloat(259.0f)), 260.0f);
  EXPECT_TRUE(std::isinf(HalfToFloat(FloatToHalf(65520.0f))));
  EXPECT_TRUE(std::isnan(BfloatToFloat(FloatToBfloat(NAN))));
}

TEST(HalfTest, NansBecomeTheQuietOneOfTheirSign) {
  const float signaling = std::bit_cast<float>(uint32_t{0xff812345});
  EXPECT_EQ(FloatToHalf(signaling), 0xfe00);
  EXPECT_EQ(FloatToBfloat(signaling), 0xffc0);
  EXPECT_EQ(FloatToBfloat(NAN), 0x7fc0);
}

TEST(HalfTest, SmallNumbersLoseBitsAndNotTheirSign) {
  EXPECT_EQ(HalfToFloat(1), std::ldexp(1.0f, -24));
  EXPECT_EQ(FloatToHalf(std::ldexp(-3.0f, -25)), 0x8002);
  EXPECT_EQ(FloatToHalf(std::ldexp(-1.0f, -25)), 0x8000);
}

TEST(HalfTest, ArithmeticIsRoundedOnce) {
  for (DataType dtype : {tensorflow::DT_HALF, tensorflow::DT_BFLOAT16}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor sum,
                                 Op("Add")
                                     .Type("T", dtype)
                                     .In(Halves({1, 2, -0.5}, dtype))
                                     .In(Halves({0.5}, dtype))
                                     .Run());
    EXPECT_EQ(sum.dtype(), dtype);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor wide, HalfAsFloat(sum));
    EXPECT_THAT(ValuesOf<float>(wide), ElementsAre(1.5f, 2.5f, 0.0f));
  }
}

TEST(HalfTest, AnOutputOfAnotherTypeStaysAsItIs) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor is_nan,
                               Op("IsNan")
                                   .Type("T", tensorflow::DT_HALF)
                                   .In(Halves({1, NAN}, tensorflow::DT_HALF))
                                   .Run());
  EXPECT_THAT(ValuesOf<bool>(is_nan), ElementsAre(false, true));
}

TEST(EvaluateNodeTest, RefusesANumberOfInputsThatTheOpDoesNotTake) {
  const auto result = Op("Exp").In(Float(1)).In(Float(2)).Run();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("takes 1 inputs, but got 2"));
}

TEST(TensorTest, BoolsAreASpanToo) {
  Tensor flags = Tensor::Scalar<bool>(true);
  EXPECT_EQ(flags.flat<bool>().size(), 1u);
  EXPECT_TRUE(flags.flat<bool>()[0]);
}

}  // namespace
}  // namespace optfarm::runtime
