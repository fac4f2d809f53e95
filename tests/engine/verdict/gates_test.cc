// Gates of speed, and the failure that gates make.

#include "engine/verdict/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace optfarm::verdict {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::Recipe RecipeWithBound(double min_speedup) {
  v1::Recipe recipe;
  recipe.set_name("int8");
  recipe.mutable_bounds()->set_min_speedup(min_speedup);
  return recipe;
}

v1::Measurement Measured(const std::string& variant, int threads,
                         double median_us) {
  v1::Measurement m;
  m.set_variant(variant);
  m.set_device("pi4");
  m.set_threads(threads);
  m.set_median_us(median_us);
  return m;
}

TEST(SpeedGatesTest, EveryThreadCountIsChecked) {
  const auto gates =
      SpeedGates(RecipeWithBound(1.5), "pi4",
                 {Measured("float", 1, 4000), Measured("int8", 1, 2000),
                  Measured("float", 4, 1200), Measured("int8", 4, 1000)});
  ASSERT_EQ(gates.size(), 2u);
  EXPECT_EQ(gates[0].name(), "min_speedup[pi4,1]");
  EXPECT_TRUE(gates[0].passed());
  EXPECT_EQ(gates[1].name(), "min_speedup[pi4,4]");
  EXPECT_FALSE(gates[1].passed());
  EXPECT_DOUBLE_EQ(gates[1].value(), 1.2);
  EXPECT_DOUBLE_EQ(gates[1].bound(), 1.5);
}

TEST(SpeedGatesTest, NoisyMeasurementIsSaidToBeNoisy) {
  std::vector<v1::Measurement> measurements = {Measured("float", 1, 4000),
                                               Measured("int8", 1, 4000)};
  EXPECT_THAT(SpeedGates(RecipeWithBound(2), "pi4", measurements)[0].message(),
              AllOf(HasSubstr("int8 runs 1.00 times as fast as float on pi4"),
                    ::testing::Not(HasSubstr("noisy"))));
  measurements[0].set_noisy(true);
  EXPECT_THAT(SpeedGates(RecipeWithBound(2), "pi4", measurements)[0].message(),
              HasSubstr("noisy"));
}

TEST(SpeedGatesTest, BoundThatCannotBeCheckedFails) {
  EXPECT_THAT(SpeedGates(v1::Recipe(), "pi4", {Measured("float", 4, 10)}),
              IsEmpty());
  const auto unmeasured =
      SpeedGates(RecipeWithBound(1), "pi4", {Measured("float", 4, 10)});
  ASSERT_EQ(unmeasured.size(), 1u);
  EXPECT_FALSE(unmeasured[0].passed());
  const auto nothing = SpeedGates(RecipeWithBound(1), "pi4", {});
  ASSERT_EQ(nothing.size(), 1u);
  EXPECT_FALSE(nothing[0].passed());
  EXPECT_TRUE(std::isnan(nothing[0].value()));
}

TEST(GateFailureTest, NamesEveryMissedGate) {
  EXPECT_EQ(GateFailure({}), std::nullopt);
  std::vector<v1::GateResult> gates(3);
  gates[0].set_passed(true);
  gates[1].set_name("one");
  gates[2].set_name("two");
  const std::optional<v1::Failure> failure = GateFailure(gates);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind(), v1::Failure::USER);
  EXPECT_EQ(failure->code(), "GATE_FAILED");
  EXPECT_THAT(failure->message(),
              AllOf(HasSubstr("2 of 3"), HasSubstr("one"), HasSubstr("two")));
}

}  // namespace
}  // namespace optfarm::verdict
