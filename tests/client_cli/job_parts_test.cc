// Small parts of the commands: layer flags.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client_cli/flags/layer_flags.h"
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

}  // namespace
}  // namespace optfarm::client_cli
