// Following a job over a connection that breaks, on a fake clock.

#include "client_cli/jobs/job_follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client_cli/fake_farm_client.h"
#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::JobEvent Event(int64_t sequence) {
  v1::JobEvent event;
  event.set_sequence(sequence);
  return event;
}

class JobFollowTest : public ::testing::Test {
 protected:
  JobFollowTest() {
    farm_.job.set_job_id("j1");
    farm_.job.set_state(v1::SUCCEEDED);
    options_.clock = &clock_;
    options_.on_event = [this](const v1::JobEvent& event) {
      seen_.push_back(event.sequence());
    };
    options_.on_lost = [this](const absl::Status&) { ++lost_; };
  }

  absl::StatusOr<v1::Job> Follow() {
    return FollowJob(&client_, "j1", options_);
  }

  FakeFarm farm_;
  FakeFarmClient client_{&farm_};
  FakeClock clock_{absl::FromUnixSeconds(1000)};
  FollowOptions options_;
  std::vector<int64_t> seen_;
  int lost_ = 0;
};

TEST_F(JobFollowTest, ReturnsTheJobWhenTheStreamEnds) {
  farm_.streams = {{{Event(1), Event(2)}, absl::OkStatus()}};
  const auto job = Follow();
  OPTFARM_ASSERT_OK(job);
  EXPECT_EQ(job->state(), v1::SUCCEEDED);
  EXPECT_THAT(seen_, ElementsAre(1, 2));
  EXPECT_EQ(lost_, 0);
}

TEST_F(JobFollowTest, GoesOnFromTheLastEventAfterABreak) {
  farm_.streams = {{{Event(1), Event(2)}, absl::UnavailableError("gone")},
                   {{}, absl::UnavailableError("still gone")},
                   {{Event(3)}, absl::OkStatus()}};
  OPTFARM_ASSERT_OK(Follow());
  EXPECT_THAT(farm_.watched_after, ElementsAre(0, 2, 2));
  EXPECT_THAT(seen_, ElementsAre(1, 2, 3));
  EXPECT_EQ(lost_, 2);
}

TEST_F(JobFollowTest, RepeatedEventsAreShownOnce) {
  farm_.streams = {{{Event(1), Event(2)}, absl::UnavailableError("gone")},
                   {{Event(2), Event(3)}, absl::OkStatus()}};
  OPTFARM_ASSERT_OK(Follow());
  EXPECT_THAT(seen_, ElementsAre(1, 2, 3));
}

TEST_F(JobFollowTest, SurvivesABreakBetweenStreamAndGet) {
  farm_.streams = {{{Event(1)}, absl::OkStatus()}, {{}, absl::OkStatus()}};
  farm_.get_failures = {absl::UnavailableError("gone")};
  OPTFARM_ASSERT_OK(Follow());
  EXPECT_THAT(farm_.watched_after, ElementsAre(0, 1));
}

TEST_F(JobFollowTest, TimeoutEndsWithItsOwnCode) {
  farm_.job.set_state(v1::RUNNING);
  options_.timeout = absl::Seconds(30);
  const auto job = Follow();
  EXPECT_EQ(ExitCodeOf(job.status()), ExitCode::kTimeout);
  EXPECT_THAT(std::string(job.status().message()),
              HasSubstr("job j1 has not ended within 30 s; it goes on"));
}

TEST_F(JobFollowTest, TimeoutIsNotTakenForALostServer) {
  farm_.streams = {{{}, absl::DeadlineExceededError("deadline")}};
  // As much is left of the time as deadlines of calls are cut.
  options_.timeout = absl::Microseconds(900);
  EXPECT_EQ(ExitCodeOf(Follow().status()), ExitCode::kTimeout);
  EXPECT_EQ(lost_, 0);
}

TEST_F(JobFollowTest, GivesUpWhenTheServerStaysAway) {
  for (int i = 0; i < 1000; ++i) {
    farm_.streams.push_back({{}, absl::UnavailableError("connection refused")});
  }
  const auto job = Follow();
  EXPECT_EQ(ExitCodeOf(job.status()), ExitCode::kUnavailable);
  EXPECT_THAT(std::string(job.status().message()),
              HasSubstr("connection refused"));
  EXPECT_GE(clock_.Now(), absl::FromUnixSeconds(1000) + absl::Minutes(10));
  EXPECT_LT(clock_.Now(), absl::FromUnixSeconds(1000) + absl::Minutes(12));
}

TEST_F(JobFollowTest, UnknownJobIsNotRetried) {
  farm_.streams = {{{}, absl::NotFoundError("there is no job 'j1'")}};
  EXPECT_EQ(ExitCodeOf(Follow().status()), ExitCode::kNotFound);
  EXPECT_EQ(lost_, 0);
}

}  // namespace
}  // namespace optfarm::client_cli
