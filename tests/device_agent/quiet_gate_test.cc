// A device is measured when it is cool, idle and charged, or when the wait for
// that is over.

#include "device_agent/quiet_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace optfarm::device_agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::DeviceHealth At(double celsius, double load = 0, int battery = 100) {
  v1::DeviceHealth health;
  health.set_temperature_mc(static_cast<int64_t>(celsius * 1000));
  health.set_load_average(load);
  health.set_battery_percent(battery);
  return health;
}

TEST(QuietGateTest, SaysWhatThereIsToWaitFor) {
  const QuietLimits limits{60, 1.5, 30};
  EXPECT_EQ(WhyWait(At(60, 1.5, 30), limits), "");
  EXPECT_THAT(WhyWait(At(71), limits), HasSubstr("71 degrees"));
  EXPECT_THAT(WhyWait(At(20, 2.5), limits), HasSubstr("2.5 processors"));
  EXPECT_THAT(WhyWait(At(20, 0, 29), limits), HasSubstr("29 %"));
  v1::DeviceHealth throttled;
  throttled.set_throttled(true);
  EXPECT_THAT(WhyWait(throttled, limits), HasSubstr("throttles"));
  // Neither a device that tells nothing nor an agent without limits waits.
  EXPECT_EQ(WhyWait(v1::DeviceHealth(), limits), "");
  EXPECT_EQ(WhyWait(At(99, 99, 1), QuietLimits()), "");
}

class AwaitQuietTest : public ::testing::Test {
 protected:
  std::string Await(std::vector<double> celsius, absl::Duration patience) {
    size_t next = 0;
    return AwaitQuiet(
        [&] { return At(celsius[std::min(next++, celsius.size() - 1)]); },
        {60, 0, 0}, patience,
        [&](absl::string_view reason) { told_.emplace_back(reason); },
        [&] { return now_; }, [&](absl::Duration d) { now_ += d; });
  }

  absl::Time now_ = absl::UnixEpoch();
  std::vector<std::string> told_;
};

TEST_F(AwaitQuietTest, ReturnsAsSoonAsItIsQuiet) {
  EXPECT_EQ(Await({71, 65, 59, 80}, absl::Minutes(1)), "");
  EXPECT_THAT(told_, ElementsAre("cooling down, 71 degrees",
                                 "cooling down, 65 degrees"));
  EXPECT_EQ(now_, absl::UnixEpoch() + absl::Seconds(4));
}

TEST_F(AwaitQuietTest, GivesUpAtTheDeadlineWithTheReason) {
  EXPECT_THAT(Await({71}, absl::Seconds(5)), HasSubstr("71 degrees"));
  EXPECT_EQ(now_, absl::UnixEpoch() + absl::Seconds(5));
  EXPECT_THAT(Await({71}, absl::ZeroDuration()), HasSubstr("71 degrees"));
}

}  // namespace
}  // namespace optfarm::device_agent
