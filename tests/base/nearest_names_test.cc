#include "base/nearest_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optfarm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NearestNamesTest, OrdersByDistance) {
  const std::vector<std::string> known = {"fp32", "int8", "int16", "weights8"};
  EXPECT_THAT(NearestNames("int88", known, 2), ElementsAre("int8", "int16"));
}

TEST(NearestNamesTest, FindsALongNameByItsPart) {
  const std::vector<std::string> known = {"MobilenetV1/Predictions/Reshape_1"};
  EXPECT_THAT(NearestNames("predictions", known, 3), ElementsAre(known[0]));
}

TEST(NearestNamesTest, OffersNothingWhenNothingIsNear) {
  const std::vector<std::string> known = {"alpha"};
  EXPECT_THAT(NearestNames("zzzzzz", known, 3), IsEmpty());
  EXPECT_EQ(NearestNamesHint("zzzzzz", known), "");
}

}  // namespace
}  // namespace optfarm
