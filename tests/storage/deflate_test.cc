#include "storage/sql/deflate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace optfarm::storage {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::_;

TEST(DeflateTest, RoundTripsAndNoticesDamage) {
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(100'000, 'x')}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string small, Deflate(text));
    EXPECT_EQ(*Inflate(small, text.size()), text);
    EXPECT_THAT(Inflate(small, text.size() + 1),
                StatusIs(absl::StatusCode::kDataLoss, _));
  }
  EXPECT_THAT(Inflate("nonsense", 10),
              StatusIs(absl::StatusCode::kDataLoss, _));
  EXPECT_THAT(Inflate("x", size_t{1} << 40),
              StatusIs(absl::StatusCode::kDataLoss, _));
}

}  // namespace
}  // namespace optfarm::storage
