#include "server/scheduling/long_polls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/scheduler_fixture.h"

namespace optfarm::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LongPollsTest : public SchedulerFixture {
 protected:
  // A worker that wants its call held so long.
  void Serve(LongPolls& polls, const std::string& worker,
             absl::Duration patience) {
    v1::SynchronizeRequest request = WorkerCall(worker);
    request.mutable_long_poll()->set_seconds(absl::ToInt64Seconds(patience));
    polls.Serve({IncomingCall{
        &request, scheduler_->BeginCall(worker), now_,
        [this, worker](const absl::StatusOr<v1::SynchronizeResponse>& reply) {
          EXPECT_TRUE(reply.ok()) << reply.status();
          answered_.push_back(worker);
        }}});
  }

  std::vector<std::string> answered_;
};

// Whoever holds a task calls often, beside idle ones that wait for long.
TEST_F(LongPollsTest, ACallThatEndsSoonerThanThoseBeforeItIsAnsweredInTime) {
  int wakes = 0;
  LongPolls polls(*scheduler_, [&wakes] { ++wakes; });
  Serve(polls, "idle", absl::Seconds(30));
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(polls.Run(now_), now_ + absl::Seconds(30));
  Serve(polls, "busy", absl::Seconds(1));
  EXPECT_EQ(wakes, 2);
  EXPECT_EQ(polls.Run(now_), now_ + absl::Seconds(1));
  Serve(polls, "patient", absl::Seconds(20));
  EXPECT_EQ(wakes, 2);
  EXPECT_THAT(answered_, IsEmpty());
  EXPECT_EQ(polls.Run(now_ + absl::Seconds(1)), now_ + absl::Seconds(20));
  EXPECT_THAT(answered_, ElementsAre("busy"));
}

}  // namespace
}  // namespace optfarm::server
