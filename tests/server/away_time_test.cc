#include "server/scheduling/away_time.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace optfarm::server {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1700000000);

TEST(AwayTimeTest, CountsTheGapsSinceATime) {
  AwayTime away;
  away.Note(kStart, kStart + absl::Hours(1));
  away.Note(kStart + absl::Hours(5), kStart + absl::Hours(7));
  EXPECT_EQ(away.Since(kStart - absl::Hours(1)), absl::Hours(3));
  EXPECT_EQ(away.Since(kStart), absl::Hours(3));
  EXPECT_EQ(away.Since(kStart + absl::Hours(2)), absl::Hours(2));
  EXPECT_EQ(away.Since(kStart + absl::Hours(8)), absl::ZeroDuration());
}

// A gap is noted from the last sign of life, and what came after that and
// before the end is as innocent.
TEST(AwayTimeTest, CountsTheRestOfAGapThatHadBegun) {
  AwayTime away;
  away.Note(kStart, kStart + absl::Hours(1));
  EXPECT_EQ(away.Since(kStart + absl::Seconds(3)),
            absl::Hours(1) - absl::Seconds(3));
  EXPECT_EQ(away.Since(kStart + absl::Hours(1)), absl::ZeroDuration());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const AwayTime read,
                               AwayTime::FromText(away.ToText()));
  EXPECT_EQ(read.Since(kStart + absl::Seconds(3)),
            absl::Hours(1) - absl::Seconds(3));
}

TEST(AwayTimeTest, AGapThatAClockSetBackShortensSurvivesAsText) {
  AwayTime away;
  away.Note(kStart, kStart + absl::Hours(1));
  const absl::Time now = kStart + absl::Minutes(10);
  away.Note(kStart + absl::Hours(1), now);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const AwayTime read,
                               AwayTime::FromText(away.ToText()));
  for (const AwayTime& each : {away, read}) {
    EXPECT_EQ(each.Since(kStart), absl::Hours(1));
    EXPECT_EQ(each.Since(now - absl::Minutes(4)), absl::Minutes(4));
    EXPECT_EQ(each.Since(now + absl::Minutes(4)), absl::ZeroDuration());
  }
}

TEST(AwayTimeTest, GapsFromBeforeTheClockWasSetBackAreForWhatIsOlder) {
  AwayTime away;
  away.Note(kStart, kStart + absl::Hours(1));
  const absl::Time now = kStart - absl::Hours(24);
  away.Note(kStart + absl::Hours(1), now);
  EXPECT_EQ(away.Since(now), absl::ZeroDuration());
  EXPECT_EQ(away.Since(now - absl::Hours(1)), absl::Hours(1));
}

TEST(AwayTimeTest, SurvivesAsText) {
  AwayTime away;
  away.Note(kStart, kStart + absl::Minutes(90));
  away.NoteHere(kStart + absl::Hours(9));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const AwayTime read,
                               AwayTime::FromText(away.ToText()));
  EXPECT_EQ(read.last_here(), kStart + absl::Hours(9));
  EXPECT_EQ(read.Since(kStart), absl::Minutes(90));
  for (const char* bad : {"here", "here x 0", "away 1 -1", "gone 1 1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(AwayTime::FromText(bad).status()))
        << bad;
  }
  EXPECT_EQ(AwayTime::FromText("")->last_here(), absl::InfinitePast());
}

}  // namespace
}  // namespace optfarm::server
