// The state machines and the arithmetic of waiting, as tables.

#include "server/scheduling/scheduling_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace optfarm::server {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

// Every pair of states, so that no move is allowed by accident.
template <typename State>
std::vector<std::string> Moves(const std::vector<State>& states,
                               const std::string& (*name)(State)) {
  std::vector<std::string> moves;
  for (const State from : states) {
    for (const State to : states) {
      if (MayFollow(from, to)) moves.push_back(name(from) + ">" + name(to));
    }
  }
  return moves;
}

TEST(SchedulingPolicyTest, TaskStateMachineIsTheDocumentedOne) {
  EXPECT_THAT(
      Moves<v1::TaskState>({v1::BLOCKED, v1::READY, v1::LEASED, v1::TASK_DONE,
                            v1::TASK_FAILED, v1::TASK_CANCELLED},
                           &v1::TaskState_Name<v1::TaskState>),
      ::testing::UnorderedElementsAre(
          "BLOCKED>READY", "BLOCKED>TASK_CANCELLED", "READY>LEASED",
          "READY>TASK_FAILED", "READY>TASK_CANCELLED", "LEASED>READY",
          "LEASED>TASK_DONE", "LEASED>TASK_FAILED", "LEASED>TASK_CANCELLED"));
}

TEST(SchedulingPolicyTest, JobStateMachineIsTheDocumentedOne) {
  EXPECT_THAT(Moves<v1::JobState>({v1::QUEUED, v1::RUNNING, v1::SUCCEEDED,
                                   v1::FAILED, v1::CANCELLED},
                                  &v1::JobState_Name<v1::JobState>),
              ::testing::UnorderedElementsAre(
                  "QUEUED>RUNNING", "QUEUED>SUCCEEDED", "QUEUED>FAILED",
                  "QUEUED>CANCELLED", "RUNNING>SUCCEEDED", "RUNNING>FAILED",
                  "RUNNING>CANCELLED"));
}

TEST(SchedulingPolicyTest, EndedStatesHaveNoWayOut) {
  for (int from = 0; from <= 6; ++from) {
    for (int to = 0; to <= 6; ++to) {
      const auto state = static_cast<v1::TaskState>(from);
      if (HasEnded(state)) {
        EXPECT_FALSE(MayFollow(state, static_cast<v1::TaskState>(to)));
      }
    }
  }
}

TEST(SchedulingPolicyTest, BackOffDoublesUpToItsLimit) {
  SchedulingOptions options;
  options.retry_base = absl::Seconds(2);
  options.retry_max = absl::Seconds(30);
  const std::vector<int> expected = {2, 4, 8, 16, 30, 30};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(RetryDelay(static_cast<int>(i) + 1, options),
              absl::Seconds(expected[i]));
  }
  EXPECT_EQ(RetryDelay(1000000, options), absl::Seconds(30));
}

TEST(SchedulingPolicyTest, DeadlinesPassAtTheirMoment) {
  struct Case {
    v1::TaskState state;
    absl::Duration since_ready;
    absl::Duration since_attempt;
    absl::Duration lease_left;
    TaskDeadline expected;
    double progress = 0;
  };
  const JobLimits limits{absl::Hours(1), absl::Minutes(10), absl::Hours(5),
                         absl::Minutes(4)};
  const absl::Duration tick = absl::Microseconds(1);
  const Case cases[] = {
      {v1::BLOCKED, absl::Hours(9), {}, {}, TaskDeadline::kNone},
      {v1::READY, absl::Hours(1) - tick, {}, {}, TaskDeadline::kNone},
      {v1::READY, absl::Hours(1), {}, {}, TaskDeadline::kQueue},
      {v1::LEASED, absl::Hours(9), {}, tick, TaskDeadline::kNone},
      {v1::LEASED, {}, {}, absl::ZeroDuration(), TaskDeadline::kLease},
      {v1::LEASED, {}, absl::Minutes(4) - tick, tick, TaskDeadline::kNone},
      {v1::LEASED, {}, absl::Minutes(4), tick, TaskDeadline::kProvision},
      {v1::LEASED, {}, absl::Minutes(4), -tick, TaskDeadline::kProvision},
      {v1::LEASED, {}, absl::Minutes(4), tick, TaskDeadline::kNone, 0.01},
      {v1::LEASED, {}, absl::Minutes(10), tick, TaskDeadline::kRun, 0.01},
      {v1::LEASED, {}, absl::Minutes(10), tick, TaskDeadline::kRun},
      {v1::LEASED, {}, absl::Hours(9), tick, TaskDeadline::kNone, 1},
      {v1::LEASED, {}, absl::Hours(9), -tick, TaskDeadline::kLease, 1},
      {v1::LEASED, {}, absl::Minutes(10), -tick, TaskDeadline::kRun},
      {v1::TASK_DONE, absl::Hours(9), absl::Hours(9), -tick,
       TaskDeadline::kNone},
  };
  for (const Case& c : cases) {
    storage::TaskRecord task;
    task.state = c.state;
    task.ready_time = kNow - c.since_ready;
    task.attempt_start_time = kNow - c.since_attempt;
    task.lease_deadline = kNow + c.lease_left;
    task.progress = c.progress;
    EXPECT_EQ(PassedDeadline(task, limits, AwayTime(), kNow), c.expected)
        << v1::TaskState_Name(c.state);
    // What has not passed is due later, what has is due.
    if (c.expected != TaskDeadline::kNone) {
      EXPECT_LE(NextDue(task, limits, AwayTime(), kNow), kNow);
    } else {
      EXPECT_GT(NextDue(task, limits, AwayTime(), kNow), kNow);
    }
  }
}

TEST(SchedulingPolicyTest, LeaseCountsAttemptsAndFailureCountsFailures) {
  SchedulingOptions options;
  storage::TaskRecord task;
  task.state = v1::READY;
  task.max_attempts = 2;
  const v1::Failure internal = MakeFailure(v1::Failure::INTERNAL, "X", "x");
  task = Leased(task, {"id", "name"}, kNow, options);
  EXPECT_EQ(task.attempt, 1);
  EXPECT_EQ(task.lease_deadline, kNow + options.lease);
  EXPECT_FALSE(IsLeasable(task, kNow));
  task = AttemptFailed(task, internal, kNow, options);
  EXPECT_EQ(task.state, v1::READY);
  EXPECT_FALSE(IsLeasable(task, kNow));
  EXPECT_TRUE(IsLeasable(task, kNow + options.retry_base));
  task = AttemptFailed(Leased(task, {"id", "name"}, kNow, options), internal,
                       kNow, options);
  EXPECT_EQ(task.state, v1::TASK_FAILED);
  EXPECT_EQ(task.attempt, 2);
}

}  // namespace
}  // namespace optfarm::server
