// How devices are seen: states, quarantine, operators' changes, and alerts when
// one that should report does not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/scheduling/device_view.h"
#include "tests/server/scheduler_fixture.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class DeviceHealthTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    Call(AgentCall("pi4"));
  }
  v1::Device Pi4() { return *scheduler_->FindDevice("pi4", now_); }

  // Each with a job of its own, all waiting for pi4.
  void SubmitBenchmarks(int count) {
    for (int i = 0; i < count; ++i) {
      v1::JobSpec spec = Spec({"pi4"});
      spec.set_max_attempts(1);
      spec.set_no_cache(true);
      SubmitOk(spec);
      Complete(LeaseToWorker(), GoodReport());
    }
  }
  // Fails the device's next task; false when it gets none.
  bool FailOne(v1::Failure::Kind kind = v1::Failure::INTERNAL) {
    const auto response = Call(AgentCall());
    if (response.new_tasks().empty()) return false;
    Complete(response.new_tasks(0), Failing(kind), "agent-1");
    return true;
  }
  absl::StatusOr<v1::Device> Change(v1::ChangeDeviceRequest::Change change,
                                    const std::string& name = "pi4") {
    v1::ChangeDeviceRequest request;
    request.set_name(name);
    request.set_change(change);
    request.set_reason("new battery");
    return scheduler_->ChangeDevice(request, now_);
  }
};

TEST_F(DeviceHealthTest, TellsWhatTheAgentSays) {
  v1::SynchronizeRequest call = AgentCall("pi4", /*ready=*/false);
  v1::DeviceStatus& status = *call.mutable_devices(0);
  status.set_cooling(true);
  status.set_reason("71 degrees");
  status.mutable_health()->set_temperature_mc(71'000);
  status.mutable_health()->set_battery_percent(80);
  status.mutable_info()->add_tags("lab-2");
  Call(call);
  EXPECT_EQ(Pi4().state(), v1::Device::COOLING);
  EXPECT_EQ(Pi4().state_reason(), "71 degrees");
  EXPECT_EQ(Pi4().health().battery_percent(), 80);
  EXPECT_EQ(Pi4().info().tags(0), "lab-2");
  status.set_cooling(false);
  status.set_unreachable(true);
  status.set_reason("unauthorized");
  Call(call);
  EXPECT_EQ(Pi4().state(), v1::Device::OFFLINE);
  EXPECT_THAT(Pi4().alert(), HasSubstr("unauthorized"));
  Call(AgentCall());
  EXPECT_EQ(Pi4().state(), v1::Device::AVAILABLE);
  EXPECT_EQ(Pi4().alert(), "");
}

TEST_F(DeviceHealthTest, RepeatedFailuresLeadToQuarantineAndAnEnd) {
  SubmitBenchmarks(6);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(FailOne()) << i;
  EXPECT_EQ(Pi4().state(), v1::Device::QUARANTINED);
  EXPECT_EQ(Pi4().failures_in_a_row(), 3);
  EXPECT_THAT(Pi4().state_reason(), HasSubstr("what happened"));
  // The words may be another project's.
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const v1::Device seen,
      scheduler_->FindDevice("pi4", now_, std::string("another")));
  EXPECT_EQ(seen.state_reason(), "3 attempts in a row failed");
  EXPECT_EQ(scheduler_->Devices(now_, std::string("another"))[0].state_reason(),
            "3 attempts in a row failed");
  EXPECT_FALSE(FailOne());
  // A restart of the server does not end it, and time does.
  Restart();
  Call(AgentCall());
  EXPECT_EQ(Pi4().state(), v1::Device::QUARANTINED);
  now_ += absl::Minutes(31);
  EXPECT_TRUE(FailOne());
  EXPECT_EQ(Pi4().state(), v1::Device::QUARANTINED);
  // The second term is longer.
  now_ += absl::Minutes(31);
  EXPECT_FALSE(FailOne());
  EXPECT_THAT(Change(v1::ChangeDeviceRequest::ENABLE), IsOk());
  const v1::LeasedTask lease = Lease(AgentCall());
  Complete(lease, GoodBenchmark(), "agent-1");
  EXPECT_EQ(Pi4().failures_in_a_row(), 0);
}

TEST_F(DeviceHealthTest, UsersErrorsAreNotTheDevices) {
  SubmitBenchmarks(4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(FailOne(v1::Failure::USER)) << i;
  }
  EXPECT_EQ(Pi4().failures_in_a_row(), 0);
}

TEST_F(DeviceHealthTest, ReservationKeepsItForTaggedJobs) {
  SubmitBenchmarks(1);
  v1::ChangeDeviceRequest request;
  request.set_name("pi4");
  request.set_change(v1::ChangeDeviceRequest::RESERVE);
  EXPECT_THAT(
      scheduler_->ChangeDevice(request, now_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("up to 30 days")));
  request.mutable_duration()->set_seconds(3600);
  request.set_tag("nightly");
  request.set_reason("release week");
  ASSERT_THAT(scheduler_->ChangeDevice(request, now_), IsOk());
  EXPECT_EQ(Pi4().state(), v1::Device::RESERVED);
  EXPECT_THAT(Pi4().state_reason(), HasSubstr("release week"));
  EXPECT_EQ(Pi4().reserved_for_tag(), "nightly");
  EXPECT_EQ(Pi4().alert(), "");
  EXPECT_FALSE(FailOne());
  Restart();
  EXPECT_FALSE(FailOne());
  v1::JobSpec spec = Spec({"pi4"});
  spec.add_tags("nightly");
  spec.set_no_cache(true);
  const std::string job = SubmitOk(spec);
  Complete(LeaseToWorker(), GoodReport());
  const v1::LeasedTask lease = Lease(AgentCall());
  EXPECT_EQ(lease.job_id(), job);
  Complete(lease, GoodBenchmark(), "agent-1");
  // It is over: the other job gets it.
  now_ += absl::Hours(1);
  Call(AgentCall());
  EXPECT_TRUE(FailOne());
  EXPECT_FALSE(Pi4().has_reserved_until());
}

// However many others wait for the same device or its pool.
TEST_F(DeviceHealthTest, AReservedDeviceLooksAtTheTasksItMayHaveAlone) {
  const auto pooled = [this] {
    v1::SynchronizeRequest call = AgentCall();
    call.mutable_devices(0)->mutable_info()->add_tags("lab");
    return call;
  };
  const auto submit = [this](const std::string& asked, const std::string& tag) {
    v1::JobSpec spec = Spec({asked});
    spec.add_tags(tag);
    return SubmitOk(spec);
  };
  const auto looks_of_three_calls = [&](int others) {
    TearDown();
    SetUp();
    Call(pooled());
    // All after the first one take over its report.
    submit("pi4", "weekly");
    Complete(LeaseToWorker(), GoodReport());
    for (int i = 0; i < others; ++i) {
      submit(i % 2 == 0 ? "pi4" : "any:lab", "weekly");
    }
    v1::ChangeDeviceRequest reserve;
    reserve.set_name("pi4");
    reserve.set_change(v1::ChangeDeviceRequest::RESERVE);
    reserve.mutable_duration()->set_seconds(3600);
    reserve.set_tag("nightly");
    EXPECT_THAT(scheduler_->ChangeDevice(reserve, now_), IsOk());
    const int64_t before = scheduler_->Numbers(now_).task_looks;
    EXPECT_TRUE(Call(pooled()).new_tasks().empty());
    for (const std::string asked : {"any:lab", "pi4"}) {
      const std::string wanted = submit(asked, "nightly");
      const v1::LeasedTask lease = Lease(pooled());
      EXPECT_EQ(lease.job_id(), wanted);
      Complete(lease, GoodBenchmark(), "agent-1");
    }
    return scheduler_->Numbers(now_).task_looks - before;
  };
  EXPECT_EQ(looks_of_three_calls(1), 2);
  EXPECT_EQ(looks_of_three_calls(30), 2);
}

TEST_F(DeviceHealthTest, OperatorTakesItOutAndBack) {
  SubmitBenchmarks(1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(v1::Device device,
                               Change(v1::ChangeDeviceRequest::DISABLE));
  EXPECT_EQ(device.state(), v1::Device::DISABLED);
  EXPECT_EQ(device.state_reason(), "new battery");
  EXPECT_FALSE(FailOne());
  Restart();
  EXPECT_EQ(Pi4().state(), v1::Device::DISABLED);
  EXPECT_FALSE(FailOne());
  EXPECT_THAT(Change(v1::ChangeDeviceRequest::ENABLE), IsOk());
  EXPECT_TRUE(FailOne());
  EXPECT_THAT(Change(v1::ChangeDeviceRequest::ENABLE, "pi5"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("pi4")));
  EXPECT_THAT(Change(v1::ChangeDeviceRequest::ENABLE, "rack-17-left"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("list the devices to see their names")));
  EXPECT_THAT(Change(v1::ChangeDeviceRequest::CHANGE_UNSPECIFIED),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST_F(DeviceHealthTest, SilentDeviceIsMissedUntilItIsRetired) {
  now_ += absl::Minutes(14);
  EXPECT_EQ(Pi4().state(), v1::Device::OFFLINE);
  EXPECT_EQ(Pi4().alert(), "");
  now_ += absl::Minutes(2);
  EXPECT_THAT(Pi4().alert(), HasSubstr("16m"));
  scheduler_->Tick(now_);
  EXPECT_THAT(Change(v1::ChangeDeviceRequest::RETIRE), IsOk());
  EXPECT_EQ(Pi4().alert(), "");
  // It comes back by reporting.
  Call(AgentCall());
  EXPECT_EQ(Pi4().state(), v1::Device::AVAILABLE);
  now_ += absl::Minutes(16);
  EXPECT_THAT(Pi4().alert(), HasSubstr("has not reported"));
}

TEST_F(DeviceHealthTest, ADeletedNameIsForgottenAndComesBackAnew) {
  EXPECT_THAT(scheduler_->DeleteDevice("pi4", now_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("its agent agent-1 reported it")));
  EXPECT_THAT(scheduler_->DeleteDevice("pi5", now_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("pi4")));
  SubmitBenchmarks(1);
  ASSERT_TRUE(FailOne());
  now_ += absl::Minutes(5);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Device deleted,
                               scheduler_->DeleteDevice("pi4", now_));
  EXPECT_EQ(deleted.state(), v1::Device::OFFLINE);
  EXPECT_THAT(scheduler_->Devices(now_), IsEmpty());
  Restart();
  EXPECT_THAT(scheduler_->Devices(now_), IsEmpty());
  scheduler_->Tick(now_);
  Call(AgentCall());
  EXPECT_EQ(Pi4().failures_in_a_row(), 0);
  EXPECT_EQ(absl::ToUnixSeconds(now_), Pi4().first_seen().seconds());
  EXPECT_EQ(scheduler_->DeviceHistory("pi4", {}, now_)->size(), 1u);
  // Whoever retired it need not wait.
  ASSERT_THAT(Change(v1::ChangeDeviceRequest::RETIRE), IsOk());
  EXPECT_THAT(scheduler_->DeleteDevice("pi4", now_), IsOk());
}

TEST_F(DeviceHealthTest, ADeviceThatALiveJobWantsIsNotDeleted) {
  const auto tagged = [this](const std::string& name,
                             const std::string& agent) {
    v1::SynchronizeRequest call = AgentCall(name, /*ready=*/false, agent);
    call.mutable_devices(0)->mutable_info()->add_tags("lab");
    return call;
  };
  Call(tagged("pi4", "agent-1"));
  Call(tagged("pi5", "agent-2"));
  const std::string waiting = SubmitOk(Spec({"pi4"}));
  v1::JobSpec of_pool = Spec({"any:lab"});
  of_pool.set_no_cache(true);
  const std::string pooled = SubmitOk(of_pool);
  now_ += absl::Minutes(5);
  const auto refused = [](const std::string& job) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(job));
  };
  EXPECT_THAT(scheduler_->DeleteDevice("pi4", now_), refused(waiting));
  EXPECT_THAT(scheduler_->Cancel(waiting, "", now_), IsOk());
  // The other one of the pool will do, and then there is none.
  EXPECT_THAT(scheduler_->DeleteDevice("pi4", now_), IsOk());
  EXPECT_THAT(scheduler_->DeleteDevice("pi5", now_), refused(pooled));
  EXPECT_THAT(scheduler_->Cancel(pooled, "", now_), IsOk());
  EXPECT_THAT(scheduler_->DeleteDevice("pi5", now_), IsOk());
}

TEST_F(DeviceHealthTest, RefusesTagsThatAreNoNames) {
  v1::SynchronizeRequest call = AgentCall();
  call.mutable_devices(0)->mutable_info()->add_tags("a b");
  EXPECT_THAT(
      scheduler_->Synchronize(call, scheduler_->BeginCall("agent-1"), now_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tag")));
}

TEST_F(DeviceHealthTest, KeepsTheStatesThatADeviceWasIn) {
  const auto states = [&] {
    std::vector<v1::Device::State> found;
    for (const auto& state : *scheduler_->DeviceHistory("pi4", {}, now_)) {
      found.push_back(state.state);
    }
    return found;
  };
  v1::SynchronizeRequest cooling = AgentCall("pi4", /*ready=*/false);
  cooling.mutable_devices(0)->set_cooling(true);
  cooling.mutable_devices(0)->set_reason("71 degrees");
  Call(cooling);
  // Other words for the same are not another state.
  cooling.mutable_devices(0)->set_reason("70 degrees");
  Call(cooling);
  ASSERT_THAT(Change(v1::ChangeDeviceRequest::DISABLE), IsOk());
  EXPECT_THAT(states(), ElementsAre(v1::Device::DISABLED, v1::Device::COOLING,
                                    v1::Device::AVAILABLE));
  const auto newest = scheduler_->DeviceHistory("pi4", {0, 1}, now_);
  ASSERT_THAT(newest, IsOk());
  ASSERT_EQ(newest->size(), 1u);
  EXPECT_EQ((*newest)[0].reason, "new battery");
  // It is known after a restart, and begins no state anew.
  Restart();
  EXPECT_EQ(states().size(), 3u);
  EXPECT_THAT(scheduler_->DeviceHistory("pi5", {}, now_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("pi4")));
}

TEST_F(DeviceHealthTest, SilenceAndItsEndAreStates) {
  Call(AgentCall("pi5", /*ready=*/true, "agent-2"));
  now_ += absl::Minutes(5);
  scheduler_->Tick(now_);
  Call(AgentCall("pi4"));
  EXPECT_THAT(scheduler_->CountDevices(now_),
              ElementsAre(Pair(v1::Device::AVAILABLE, 1),
                          Pair(v1::Device::OFFLINE, 1)));
  const auto states = scheduler_->DeviceHistory("pi4", {}, now_);
  ASSERT_THAT(states, IsOk());
  ASSERT_EQ(states->size(), 3u);
  EXPECT_EQ((*states)[0].state, v1::Device::AVAILABLE);
  EXPECT_EQ((*states)[1].state, v1::Device::OFFLINE);
  EXPECT_THAT((*states)[1].reason, HasSubstr("does not call"));
}

// One that calls is looked at when it does.
TEST_F(DeviceHealthTest, TimeCostsALookAtThoseDevicesAloneThatItChanges) {
  constexpr int kOthers = 20;
  for (int i = 0; i < kOthers; ++i) {
    Call(AgentCall(absl::StrCat("phone-", i), true, absl::StrCat("agent-", i)));
  }
  const auto looks_until = [&](absl::Time end) {
    const int64_t before = scheduler_->Numbers(now_).device_looks;
    for (; now_ < end; now_ += absl::Seconds(5)) scheduler_->Tick(now_);
    return scheduler_->Numbers(now_).device_looks - before;
  };
  EXPECT_EQ(looks_until(kStart + absl::Seconds(55)), 0);
  Call(AgentCall("pi4"));
  // The others have been silent for too long, and later they are missed.
  EXPECT_EQ(looks_until(kStart + absl::Seconds(110)), kOthers);
  EXPECT_EQ(looks_until(kStart + absl::Minutes(14)), 1);
  EXPECT_EQ(looks_until(kStart + absl::Minutes(17)), kOthers + 1);
  EXPECT_EQ(looks_until(kStart + absl::Hours(3)), 0);
  EXPECT_EQ(scheduler_->DeviceHistory("phone-3", {}, now_)->at(0).time,
            kStart + absl::Seconds(65));
}

TEST_F(DeviceHealthTest, ADeviceOfAPoolIsKnownToBeFreeWhenItsLeaseEnds) {
  v1::SynchronizeRequest call = AgentCall();
  call.mutable_devices(0)->mutable_info()->add_tags("lab");
  Call(call);
  SubmitOk(Spec({"any:lab"}));
  Complete(LeaseToWorker(), GoodReport());
  EXPECT_EQ(Lease(call).benchmark().device(), "pi4");
  now_ += absl::Seconds(28);
  scheduler_->Tick(now_);
  now_ += absl::Seconds(2);
  scheduler_->Tick(now_);
  const absl::Time end = now_;
  now_ += absl::Seconds(1);
  const auto states = scheduler_->DeviceHistory("pi4", {}, now_);
  ASSERT_THAT(states, IsOk());
  EXPECT_EQ(states->at(0).state, v1::Device::AVAILABLE);
  EXPECT_EQ(states->at(0).time, end);
}

TEST_F(DeviceHealthTest, AnAgentThatEndsACancelledTaskIsBusy) {
  Call(AgentCall("pi4", /*ready=*/false));
  EXPECT_EQ(Pi4().state(), v1::Device::BUSY);
  EXPECT_THAT(Pi4().state_reason(), HasSubstr("ends a task"));
}

}  // namespace
}  // namespace optfarm::server
