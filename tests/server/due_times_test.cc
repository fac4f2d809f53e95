#include "server/scheduling/due_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optfarm::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1700000000);
constexpr absl::Duration kSecond = absl::Seconds(1);

TEST(DueTimes, ThoseThatHavePassedComeFirstAndTheNextIsTold) {
  DueTimes due;
  EXPECT_THAT(due.PassedAt(kNow), IsEmpty());
  EXPECT_EQ(due.FirstAfter(kNow), absl::InfiniteFuture());
  due.Set("later", kNow + kSecond);
  due.Set("now", kNow);
  due.Set("before", kNow - kSecond);
  due.Set("also_before", kNow - kSecond);
  EXPECT_THAT(due.PassedAt(kNow), ElementsAre("also_before", "before", "now"));
  EXPECT_EQ(due.FirstAfter(kNow), kNow + kSecond);
  EXPECT_EQ(due.FirstAfter(kNow + kSecond), absl::InfiniteFuture());
}

TEST(DueTimes, AJobHasOneTimeTheLastThatWasSet) {
  DueTimes due;
  due.Set("job", kNow);
  due.Set("job", kNow + kSecond);
  due.Set("job", kNow + kSecond);
  EXPECT_THAT(due.PassedAt(kNow), IsEmpty());
  EXPECT_THAT(due.PassedAt(kNow + kSecond), ElementsAre("job"));
  due.Erase("job");
  due.Erase("job");
  EXPECT_THAT(due.PassedAt(kNow + kSecond), IsEmpty());
}

}  // namespace
}  // namespace optfarm::server
