#include "server/scheduling/long_polls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/scheduler_fixture.h"

namespace optfarm::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class LongPollsTest : public SchedulerFixture {
 protected:
  void Listen(LongPolls& polls) {
    scheduler_->SetListener(
        [&polls](const SchedulerNews& news) { polls.NoteNews(news); });
  }
  // Callers that want their calls held so long.
  void Serve(LongPolls& polls, std::vector<v1::SynchronizeRequest> requests,
             absl::Duration patience = absl::Seconds(60)) {
    std::vector<IncomingCall> calls;
    for (v1::SynchronizeRequest& request : requests) {
      request.mutable_long_poll()->set_seconds(absl::ToInt64Seconds(patience));
      const std::string& caller = request.participant_id();
      calls.push_back(
          {&request, scheduler_->BeginCall(caller), now_,
           [this,
            caller](const absl::StatusOr<v1::SynchronizeResponse>& reply) {
             EXPECT_TRUE(reply.ok()) << reply.status();
             answered_.push_back(caller);
           }});
    }
    polls.Serve(std::move(calls));
  }
  void Serve(LongPolls& polls, const std::string& worker,
             absl::Duration patience) {
    Serve(polls, {WorkerCall(worker)}, patience);
  }
  // As the server does, until there is nothing more to do now.
  void RunAll(LongPolls& polls) {
    scheduler_->Tick(now_);
    while (polls.Run(now_) <= now_) {
    }
  }
  v1::SynchronizeRequest AgentOfPool(int number) {
    v1::SynchronizeRequest request =
        AgentCall(absl::StrCat("phone-", number), /*ready=*/true,
                  absl::StrCat("agent-", number));
    request.mutable_devices(0)->mutable_info()->add_tags("phone");
    return request;
  }
  // A job whose model is optimized, so that it waits for its devices.
  std::string SubmitToMeasure(const std::vector<std::string>& devices,
                              const std::string& tag = "") {
    v1::JobSpec spec = Spec(devices);
    if (!tag.empty()) spec.add_tags(tag);
    const std::string job_id = SubmitOk(spec);
    if (Task(job_id, 0).state == v1::READY) {
      Complete(LeaseToWorker(), GoodReport());
    }
    return job_id;
  }
  void Reserve(const std::string& device, const std::string& tag,
               absl::Duration term) {
    v1::ChangeDeviceRequest change;
    change.set_name(device);
    change.set_change(v1::ChangeDeviceRequest::RESERVE);
    change.set_tag(tag);
    change.mutable_duration()->set_seconds(absl::ToInt64Seconds(term));
    OPTFARM_ASSERT_OK(scheduler_->ChangeDevice(change, now_));
  }

  std::vector<std::string> answered_;
};

// Whoever holds a task calls often, beside idle ones that wait for long.
TEST_F(LongPollsTest, ACallThatEndsSoonerThanThoseBeforeItIsAnsweredInTime) {
  int wakes = 0;
  LongPolls polls(*scheduler_, [&wakes] { ++wakes; });
  Serve(polls, "idle", absl::Seconds(15));
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(polls.Run(now_), now_ + absl::Seconds(15));
  Serve(polls, "busy", absl::Seconds(1));
  EXPECT_EQ(wakes, 2);
  EXPECT_EQ(polls.Run(now_), now_ + absl::Seconds(1));
  Serve(polls, "patient", absl::Seconds(10));
  EXPECT_EQ(wakes, 2);
  EXPECT_THAT(answered_, IsEmpty());
  EXPECT_EQ(polls.Run(now_ + absl::Seconds(1)), now_ + absl::Seconds(10));
  EXPECT_THAT(answered_, ElementsAre("busy"));
}

// Of those who wait, as many are asked as there is work.
TEST_F(LongPollsTest, AChangeIsNewsForAsManyAsItHasWorkFor) {
  LongPolls polls(*scheduler_, [] {});
  Listen(polls);
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
  Listen(polls);
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

TEST_F(LongPollsTest, AJobCostsAsManyLooksWhetherFewOrManyWait) {
  const auto looks_of_a_job = [this](int agents) {
    LongPolls polls(*scheduler_, [] {});
    Listen(polls);
    std::vector<v1::SynchronizeRequest> requests;
    for (int i = 0; i < agents; ++i) requests.push_back(AgentOfPool(i));
    Serve(polls, std::move(requests));
    RunAll(polls);
    const int64_t before = polls.counts().looks;
    EXPECT_EQ(polls.counts().held, static_cast<size_t>(agents));
    for (const std::string device : {"phone-1", "any:phone"}) {
      now_ += absl::Seconds(2);
      SubmitToMeasure({device});
      RunAll(polls);
    }
    EXPECT_EQ(polls.counts().held, static_cast<size_t>(agents - 2));
    return polls.counts().looks - before;
  };
  const int64_t few = looks_of_a_job(10);
  TearDown();
  SetUp();
  EXPECT_EQ(looks_of_a_job(1000), few);
}

// Nobody calls when a wait ends.
TEST_F(LongPollsTest, ATaskIsOfferedAgainWhenItsWaitIsOver) {
  LongPolls polls(*scheduler_, [] {});
  Listen(polls);
  SubmitOk(Spec());
  Complete(LeaseToWorker(), Failing(v1::Failure::INTERNAL));
  Serve(polls, {WorkerCall("other")});
  RunAll(polls);
  EXPECT_THAT(answered_, IsEmpty());
  now_ += options_.retry_base;
  RunAll(polls);
  EXPECT_THAT(answered_, ElementsAre("other"));
}

TEST_F(LongPollsTest, AnAgentHearsThatItsDeviceIsInServiceAgain) {
  LongPolls polls(*scheduler_, [] {});
  Listen(polls);
  Call(AgentCall());
  v1::ChangeDeviceRequest change;
  change.set_name("pi4");
  change.set_change(v1::ChangeDeviceRequest::DISABLE);
  OPTFARM_ASSERT_OK(scheduler_->ChangeDevice(change, now_));
  SubmitToMeasure({"pi4"});
  Serve(polls, {AgentCall()});
  RunAll(polls);
  EXPECT_THAT(answered_, IsEmpty());
  change.set_change(v1::ChangeDeviceRequest::ENABLE);
  OPTFARM_ASSERT_OK(scheduler_->ChangeDevice(change, now_));
  RunAll(polls);
  EXPECT_THAT(answered_, ElementsAre("agent-1"));
}

TEST_F(LongPollsTest, AnAgentHearsOfTheEndOfAReservation) {
  LongPolls polls(*scheduler_, [] {});
  Listen(polls);
  Call(AgentCall());
  Reserve("pi4", "team", absl::Seconds(10));
  SubmitToMeasure({"pi4"});
  Serve(polls, {AgentCall()});
  RunAll(polls);
  EXPECT_THAT(answered_, IsEmpty());
  now_ += absl::Seconds(10);
  RunAll(polls);
  EXPECT_THAT(answered_, ElementsAre("agent-1"));
}

// An agent that was started again brings a device for which the server still
// has a lease of the one before.
TEST_F(LongPollsTest, ADeviceIsFreeWhenALeaseOnItEnds) {
  LongPolls polls(*scheduler_, [] {});
  Listen(polls);
  Call(AgentCall());
  SubmitToMeasure({"pi4"});
  Lease(AgentCall());
  now_ += absl::Milliseconds(1);
  SubmitToMeasure({"pi4"});
  Serve(polls, {AgentCall("pi4", true, "agent-2")});
  RunAll(polls);
  EXPECT_THAT(answered_, IsEmpty());
  now_ += options_.lease;
  RunAll(polls);
  EXPECT_THAT(answered_, ElementsAre("agent-2"));
}

TEST_F(LongPollsTest, WorkThatSomeMayNotTakeIsOfferedToOthers) {
  LongPolls polls(*scheduler_, [] {});
  Listen(polls);
  for (int i = 0; i < 4; ++i) {
    Call(AgentOfPool(i));
    if (i < 3) Reserve(absl::StrCat("phone-", i), "team", absl::Hours(1));
  }
  Serve(polls,
        {AgentOfPool(0), AgentOfPool(1), AgentOfPool(2), AgentOfPool(3)});
  RunAll(polls);
  // Two who wait could take the first one's work, and none of them the other's.
  SubmitToMeasure({"any:phone"}, "team");
  SubmitToMeasure({"any:phone"});
  RunAll(polls);
  EXPECT_THAT(answered_, UnorderedElementsAre("agent-0", "agent-3"));
}

// A call may be held for as long as a device may be silent.
TEST_F(LongPollsTest, WhoseCallIsHeldIsThere) {
  LongPolls polls(*scheduler_, [] {});
  Listen(polls);
  Serve(polls, {AgentCall()}, options_.offline_after);
  const absl::Time end = now_ + options_.offline_after;
  for (absl::Time next = now_; answered_.empty();) {
    now_ = next;
    ASSERT_LE(now_, end);
    next = polls.Run(now_);
    scheduler_->Tick(now_ + absl::Seconds(5));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Device device,
                                 scheduler_->FindDevice("pi4", now_));
    EXPECT_EQ(device.state(), v1::Device::AVAILABLE);
  }
  storage::PageRequest page;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto states,
                               scheduler_->DeviceHistory("pi4", page, now_));
  EXPECT_EQ(states.size(), 1u);
}

}  // namespace
}  // namespace optfarm::server
