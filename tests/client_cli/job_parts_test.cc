// Small parts of the commands: layer flags, speed gates, durations of text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client_cli/flags/layer_flags.h"
#include "client_cli/jobs/speed_gates.h"
#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LayerFlagsTest, ListsStandSideBySide) {
  const auto specs = ParseLayerFlags("a,b", "float,uint8", "1,2:3");
  OPTFARM_ASSERT_OK(specs);
  ASSERT_EQ(specs->size(), 2u);
  EXPECT_EQ((*specs)[0].name(), "a");
  EXPECT_THAT((*specs)[0].shape(), ElementsAre(1, 2));
  EXPECT_EQ((*specs)[1].dtype(), "uint8");
  EXPECT_THAT((*specs)[1].shape(), ElementsAre(3));
}

TEST(LayerFlagsTest, TypesAndShapesMayBeLeftOut) {
  const auto specs = ParseLayerFlags("a,b", "", "");
  OPTFARM_ASSERT_OK(specs);
  EXPECT_FALSE((*specs)[1].shape_known());
  EXPECT_THAT(*ParseLayerFlags("", "", ""), IsEmpty());
}

TEST(LayerFlagsTest, CountsMustAgree) {
  EXPECT_THAT(ParseLayerFlags("a,b", "float", "1:2"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--input_layer has 2 names, "
                                 "--input_layer_type 1 types")));
  EXPECT_THAT(ParseLayerFlags("a", "flaot", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--input_layer_type")));
  EXPECT_THAT(ParseLayerFlags("a", "", "1,x"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--input_layer_shape")));
}

v1::Measurement Measured(const std::string& variant, int threads,
                         double median_us) {
  v1::Measurement m;
  m.set_variant(variant);
  m.set_device("here");
  m.set_threads(threads);
  m.set_median_us(median_us);
  return m;
}

TEST(SpeedGatesTest, EveryThreadCountIsChecked) {
  v1::Bounds bounds;
  bounds.set_min_speedup(1.5);
  const auto gates = CheckSpeedGates(
      bounds, {Measured("float", 1, 4000), Measured("int8", 1, 2000),
               Measured("float", 4, 1200), Measured("int8", 4, 1000)});
  ASSERT_EQ(gates.size(), 2u);
  EXPECT_EQ(gates[0].name(), "min_speedup[here,1]");
  EXPECT_TRUE(gates[0].passed());
  EXPECT_EQ(gates[1].name(), "min_speedup[here,4]");
  EXPECT_FALSE(gates[1].passed());
  EXPECT_DOUBLE_EQ(gates[1].value(), 1.2);
}

TEST(SpeedGatesTest, BoundThatCannotBeCheckedFails) {
  v1::Bounds bounds;
  EXPECT_THAT(CheckSpeedGates(bounds, {}), IsEmpty());
  bounds.set_min_speedup(1.5);
  const auto gates = CheckSpeedGates(bounds, {});
  ASSERT_EQ(gates.size(), 1u);
  EXPECT_FALSE(gates[0].passed());
}

}  // namespace
}  // namespace optfarm::client_cli
