// What is told about held tasks, and what each verdict does to them.

#include "rpc/held_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::rpc {
namespace {

v1::LeasedTask Lease(const std::string& id, int attempt) {
  v1::LeasedTask lease;
  lease.set_task_id(id);
  lease.set_attempt(attempt);
  return lease;
}

v1::Completion Success() {
  v1::Completion completion;
  completion.mutable_report()->set_passed(true);
  return completion;
}

class HeldTasksTest : public ::testing::Test {
 protected:
  std::shared_ptr<HeldTask> Grant(const std::string& id, int attempt) {
    v1::SynchronizeResponse response;
    *response.add_new_tasks() = Lease(id, attempt);
    const auto fresh = tasks_.Apply({}, response);
    return fresh.empty() ? nullptr : fresh[0];
  }

  v1::SynchronizeRequest Request() {
    v1::SynchronizeRequest request;
    tasks_.Fill(&request);
    return request;
  }

  // Answers `request` with one verdict about its first task.
  void Answer(const v1::SynchronizeRequest& request,
              v1::TaskVerdict::Verdict verdict) {
    v1::SynchronizeResponse response;
    v1::TaskVerdict& told = *response.add_verdicts();
    told.set_task_id(request.held(0).task_id());
    told.set_attempt(request.held(0).attempt());
    told.set_verdict(verdict);
    told.set_message("because");
    if (verdict == v1::TaskVerdict::COMPLETION_REFUSED) {
      told.add_missing_blobs()->set_sha256("aa");
    }
    tasks_.Apply(request, response);
  }

  int wakes_ = 0;
  HeldTasks tasks_{[this] { ++wakes_; }};
};

TEST_F(HeldTasksTest, ListsEverythingHeldWithProgress) {
  Grant("a", 1)->SetProgress(0.25, "calibrating\nsecond line");
  Grant("b", 3)->SetProgress(std::nan(""), std::string(500, 'x'));
  const v1::SynchronizeRequest request = Request();
  ASSERT_EQ(request.held_size(), 2);
  EXPECT_EQ(request.held(0).task_id(), "a");
  EXPECT_EQ(request.held(0).progress(), 0.25);
  EXPECT_EQ(request.held(0).progress_message(), "calibrating");
  EXPECT_EQ(request.held(1).attempt(), 3);
  EXPECT_EQ(request.held(1).progress(), 0);
  EXPECT_EQ(request.held(1).progress_message().size(), 200u);
}

TEST_F(HeldTasksTest, ALeaseToldTwiceIsOneTask) {
  EXPECT_NE(Grant("a", 1), nullptr);
  EXPECT_EQ(Grant("a", 1), nullptr);
  EXPECT_NE(Grant("a", 2), nullptr);
  EXPECT_EQ(Request().held_size(), 2);
}

TEST_F(HeldTasksTest, ACompletionIsToldUntilItIsAccepted) {
  const auto task = Grant("a", 1);
  EXPECT_FALSE(Request().held(0).has_completion());
  task->Complete(Success());
  EXPECT_EQ(wakes_, 1);
  EXPECT_TRUE(Request().held(0).has_completion());
  // The answer got lost: told again.
  const v1::SynchronizeRequest request = Request();
  EXPECT_TRUE(request.held(0).has_completion());
  Answer(request, v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(task->AwaitDecision().kind, Decision::Kind::kAccepted);
  EXPECT_TRUE(tasks_.empty());
}

TEST_F(HeldTasksTest, CancelAndStaleDropTheTask) {
  for (const auto verdict : {v1::TaskVerdict::CANCEL, v1::TaskVerdict::STALE}) {
    const auto task = Grant("a", 1);
    EXPECT_FALSE(task->ShouldStop());
    Answer(Request(), verdict);
    EXPECT_TRUE(task->ShouldStop());
    EXPECT_TRUE(task->IsDropped());
    EXPECT_TRUE(tasks_.empty());
    task->Complete(Success());
    EXPECT_EQ(task->AwaitDecision().kind, Decision::Kind::kDropped);
  }
}

TEST_F(HeldTasksTest, ARefusedCompletionCanBeMended) {
  const auto task = Grant("a", 1);
  task->Complete(Success());
  Answer(Request(), v1::TaskVerdict::COMPLETION_REFUSED);
  const Decision decision = task->AwaitDecision();
  EXPECT_EQ(decision.kind, Decision::Kind::kRefused);
  EXPECT_EQ(decision.message, "because");
  EXPECT_EQ(decision.missing_blobs.size(), 1u);
  EXPECT_FALSE(Request().held(0).has_completion());
  task->Complete(Success());
  Answer(Request(), v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(task->AwaitDecision().kind, Decision::Kind::kAccepted);
}

TEST_F(HeldTasksTest, AVerdictAboutAnotherAttemptChangesNothing) {
  const auto task = Grant("a", 2);
  v1::SynchronizeResponse response;
  v1::TaskVerdict& old = *response.add_verdicts();
  old.set_task_id("a");
  old.set_attempt(1);
  old.set_verdict(v1::TaskVerdict::STALE);
  tasks_.Apply(Request(), response);
  EXPECT_FALSE(task->ShouldStop());
}

TEST_F(HeldTasksTest, LogBytesGoOutOnceAnswered) {
  const std::string log = JoinPath(testing::FreshFolder(), "log");
  OPTFARM_ASSERT_OK(WriteFileAtomically(log, "one\n"));
  const auto task = Grant("a", 1);
  task->SetLogFile(log);
  EXPECT_EQ(Request().held(0).log_chunk(), "one\n");
  // Not answered: the same again.
  const v1::SynchronizeRequest request = Request();
  EXPECT_EQ(request.held(0).log_offset(), 0);
  EXPECT_EQ(request.held(0).log_chunk(), "one\n");
  Answer(request, v1::TaskVerdict::CONTINUE);
  OPTFARM_ASSERT_OK(WriteFileAtomically(log, "one\ntwo\n"));
  EXPECT_EQ(Request().held(0).log_offset(), 4);
  EXPECT_EQ(Request().held(0).log_chunk(), "two\n");
}

TEST_F(HeldTasksTest, ACompletionWaitsForTheRestOfTheLog) {
  const std::string log = JoinPath(testing::FreshFolder(), "log");
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(log, std::string(kMaxLogChunkBytes + 10, 'x')));
  const auto task = Grant("a", 1);
  task->SetLogFile(log);
  task->Complete(Success());
  const v1::SynchronizeRequest first = Request();
  EXPECT_EQ(first.held(0).log_chunk().size(), size_t{kMaxLogChunkBytes});
  EXPECT_FALSE(first.held(0).has_completion());
  Answer(first, v1::TaskVerdict::CONTINUE);
  EXPECT_EQ(Request().held(0).log_chunk().size(), 10u);
  EXPECT_TRUE(Request().held(0).has_completion());
}

TEST_F(HeldTasksTest, ReleaseAndDropReachEveryTask) {
  const auto a = Grant("a", 1);
  const auto b = Grant("b", 1);
  tasks_.RequestRelease();
  EXPECT_TRUE(a->ShouldStop());
  EXPECT_FALSE(a->IsDropped());
  tasks_.DropAll();
  EXPECT_TRUE(b->IsDropped());
  EXPECT_TRUE(tasks_.empty());
}

}  // namespace
}  // namespace optfarm::rpc
