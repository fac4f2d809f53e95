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

// Of those who wait, as many are asked as there is work.
TEST_F(LongPollsTest, AChangeIsNewsForAsManyAsItHasWorkFor) {
  LongPolls polls(*scheduler_, [] {});
  scheduler_->SetListener([&](const std::vector<std::string>& job_ids) {
    polls.NoteChange(job_ids);
  });
  for (int i = 0; i < 50; ++i) {
    Serve(polls, absl::StrCat("worker-", i), absl::Seconds(60));
  }
  polls.Run(now_);
  now_ += absl::Milliseconds(10);
  SubmitOk(Spec());
  polls.Run(now_);
  EXPECT_THAT(answered_, ElementsAre("worker-0"));
  now_ += absl::Milliseconds(10);
  for (int i = 0; i < 3; ++i) {
    v1::JobSpec spec = Spec();
    spec.set_no_cache(true);
    SubmitOk(spec);
  }
  polls.Run(now_);
  EXPECT_THAT(answered_,
              ElementsAre("worker-0", "worker-1", "worker-2", "worker-3"));
}

TEST_F(LongPollsTest, AHolderHearsOfTheEndOfItsJob) {
  LongPolls polls(*scheduler_, [] {});
  scheduler_->SetListener([&](const std::vector<std::string>& job_ids) {
    polls.NoteChange(job_ids);
  });
  const std::string job_id = SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker("holder");
  v1::SynchronizeRequest request = WorkerCall("holder");
  request.set_free_slots(0);
  request.mutable_long_poll()->set_seconds(30);
  v1::HeldTask& held = *request.add_held();
  held.set_task_id(lease.task_id());
  held.set_attempt(lease.attempt());
  std::vector<v1::TaskVerdict::Verdict> verdicts;
  polls.Serve(
      {IncomingCall{&request, scheduler_->BeginCall("holder"), now_,
                    [&](const absl::StatusOr<v1::SynchronizeResponse>& reply) {
                      verdicts.push_back(reply.value().verdicts(0).verdict());
                    }}});
  polls.Run(now_);
  EXPECT_THAT(verdicts, IsEmpty());
  now_ += absl::Milliseconds(10);
  OPTFARM_ASSERT_OK(scheduler_->Cancel(job_id, "enough", now_));
  polls.Run(now_);
  EXPECT_THAT(verdicts, ElementsAre(v1::TaskVerdict::CANCEL));
}

// What no job's change tells is found within a second.
TEST_F(LongPollsTest, AllAreAskedEverySecond) {
  LongPolls polls(*scheduler_, [] {});
  polls.Run(now_);
  Serve(polls, "worker", absl::Seconds(60));
  // Nobody says that there is work.
  SubmitOk(Spec());
  EXPECT_EQ(polls.Run(now_), now_ + absl::Seconds(1));
  EXPECT_THAT(answered_, IsEmpty());
  polls.Run(now_ + absl::Seconds(1));
  EXPECT_THAT(answered_, ElementsAre("worker"));
}

}  // namespace
}  // namespace optfarm::server
