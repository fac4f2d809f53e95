// Values that take the steps of quantized values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;

Op Rounded(const char* op = "QuantizeAndDequantizeV2") {
  Op made(op);
  made.Type("T", tensorflow::DT_FLOAT);
  return made;
}

// 127 steps up to the largest value; -128 of them go down.
TEST(QuantizeAndDequantizeTest, FindsTheRangeItself) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y,
                               Rounded()
                                   .In(Floats({4}, {-1, 0, 0.3f, 12.7f}))
                                   .In(Float(0))
                                   .In(Float(0))
                                   .Run());
  EXPECT_THAT(
      ValuesOf<float>(y),
      ElementsAre(FloatEq(-1), 0, FloatNear(0.3f, 1e-6f), FloatEq(12.7f)));
}

TEST(QuantizeAndDequantizeTest, ClampsToAGivenRange) {
  const Tensor x = Floats({5}, {-9, -0.6f, 0.25f, 0.5f, 9});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y, Rounded()
                                                   .Int("num_bits", 3)
                                                   .Bool("range_given", true)
                                                   .In(x)
                                                   .In(Float(-2))
                                                   .In(Float(1))
                                                   .Run());
  // Quantized values -4 to 3 of 0.5 each; half goes to the even quantized
  // value.
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(-2, -0.5f, 0, 0.5f, 1.5f));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor up,
                               Rounded()
                                   .Int("num_bits", 3)
                                   .Bool("range_given", true)
                                   .Text("round_mode", "HALF_UP")
                                   .Bool("narrow_range", true)
                                   .In(x)
                                   .In(Float(-1.5f))
                                   .In(Float(1))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(up), ElementsAre(-1.5f, -0.5f, 0.5f, 0.5f, 1.5f));
}

TEST(QuantizeAndDequantizeTest, HasARangeForEachChannel) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y,
                               Rounded("QuantizeAndDequantizeV3")
                                   .Int("axis", 1)
                                   .Bool("signed_input", false)
                                   .In(Floats({2, 2}, {0.4f, 4, 9, 90}))
                                   .In(Floats({2}, {0, 0}))
                                   .In(Floats({2}, {3, 30}))
                                   .In(Int(2))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(0, 0, 3, 30));
}

TEST(QuantizeAndDequantizeTest, TheFirstVersionHasItsRangeAsAttributes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y,
                               Rounded("QuantizeAndDequantize")
                                   .Int("num_bits", 2)
                                   .Bool("range_given", true)
                                   .Float("input_min", -2)
                                   .Float("input_max", 1)
                                   .In(Floats({3}, {-3, 0.4f, 2}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(y), ElementsAre(-2, 0, 1));
}

TEST(QuantizeAndDequantizeTest, RefusesWhatDoesNotFit) {
  const auto run = [](int64_t bits, int64_t axis, float min, float max) {
    return Rounded()
        .Int("num_bits", bits)
        .Int("axis", axis)
        .Bool("range_given", true)
        .In(Floats({2}, {1, 2}))
        .In(Float(min))
        .In(Float(max))
        .Run();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  OPTFARM_ASSERT_OK(run(8, -1, 0, 1));
  EXPECT_THAT(run(0, -1, 0, 1), StatusIs(kInvalid, ::testing::_));
  EXPECT_THAT(run(63, -1, 0, 1), StatusIs(kInvalid, ::testing::_));
  EXPECT_THAT(run(8, 1, 0, 1), StatusIs(kInvalid, ::testing::_));
  EXPECT_THAT(run(8, 0, 0, 1), StatusIs(kInvalid, ::testing::_));
  EXPECT_THAT(run(8, -1, 1, 0), StatusIs(kInvalid, ::testing::_));
  EXPECT_THAT(run(8, -1, std::nanf(""), 0), StatusIs(kInvalid, ::testing::_));
}

}  // namespace
}  // namespace optfarm::runtime
