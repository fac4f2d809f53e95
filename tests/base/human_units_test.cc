// Numbers as people read them.

#include "base/human_units.h"

#include <gtest/gtest.h>

namespace optfarm {
namespace {

TEST(HumanUnitsTest, BytesHaveThreeDigitsThatMatter) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1000), "1.00 kB");
  EXPECT_EQ(HumanBytes(1'914'239), "1.91 MB");
  EXPECT_EQ(HumanBytes(16'900'000), "16.9 MB");
  EXPECT_EQ(HumanBytes(999'960), "1.00 MB");
  EXPECT_EQ(HumanBytes(123'456'789'000), "123 GB");
}

TEST(HumanUnitsTest, MicrosecondsPickTheirUnit) {
  EXPECT_EQ(HumanMicroseconds(0.451), "0.45 us");
  EXPECT_EQ(HumanMicroseconds(812), "812 us");
  EXPECT_EQ(HumanMicroseconds(4213), "4.21 ms");
  EXPECT_EQ(HumanMicroseconds(1'250'000), "1.25 s");
}

TEST(HumanUnitsTest, DurationsAndTimesReadWell) {
  EXPECT_EQ(HumanDuration(absl::Milliseconds(850)), "850 ms");
  EXPECT_EQ(HumanDuration(absl::Seconds(12)), "12 s");
  EXPECT_EQ(HumanDuration(absl::Seconds(200)), "3 min 20 s");
  EXPECT_EQ(HumanDuration(absl::Minutes(125)), "2 h 05 min");
  EXPECT_EQ(HumanTime(absl::FromUnixSeconds(0)), "");
  EXPECT_EQ(HumanTime(absl::FromUnixSeconds(1'769'860'800)),
            "2026-01-31 12:00:00");
}

TEST(HumanUnitsTest, RatiosAndPercents) {
  EXPECT_EQ(HumanRatio(1.8), "1.80x");
  EXPECT_EQ(HumanRatio(0.256), "0.26x");
  EXPECT_EQ(HumanPercent(47.67), "47.7%");
}

}  // namespace
}  // namespace optfarm
