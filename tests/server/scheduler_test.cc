// The life of jobs and tasks: leases, attempts, retries, deadlines, restarts.

#include "server/scheduling/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpc/proto_time.h"
#include "tests/server/scheduler_fixture.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SchedulerTest : public SchedulerFixture {};

TEST_F(SchedulerTest, RunsJobFromSubmitToSuccess) {
  const std::string job = SubmitOk(Spec());
  EXPECT_EQ(State(job), v1::QUEUED);
  const v1::LeasedTask lease = LeaseToWorker();
  EXPECT_EQ(lease.attempt(), 1);
  EXPECT_EQ(lease.optimize().recipe().name(), "int8");
  EXPECT_EQ(State(job), v1::RUNNING);
  EXPECT_EQ(Complete(lease, GoodReport()).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(State(job), v1::SUCCEEDED);
  EXPECT_THAT(store_->GetReport(job), IsOk());
  EXPECT_THAT(changed_, Contains(job));
  EXPECT_THAT(*store_->LiveBlobs(), IsEmpty());
}

// What several callers bring is made durable at once, whatever is wrong with
// one.
TEST_F(SchedulerTest, CallersAtOnceShareACommitAndAreEachAnswered) {
  constexpr size_t kWorkers = 16;
  std::vector<std::string> jobs;
  std::vector<v1::LeasedTask> leases;
  const v1::Completion completion = GoodReport();
  for (size_t i = 0; i < kWorkers; ++i) {
    v1::JobSpec spec = Spec();
    spec.set_name(absl::StrCat("job", i));
    spec.set_no_cache(true);
    jobs.push_back(SubmitOk(spec));
    leases.push_back(LeaseToWorker(absl::StrCat("worker", i)));
  }
  int commits = 0;
  scheduler_->SetObserver(
      [&](const storage::WriteBatch&, absl::Duration) { ++commits; });
  std::vector<v1::SynchronizeRequest> requests;
  std::vector<NumberedCall> calls;
  for (size_t i = 0; i < kWorkers; ++i) {
    v1::SynchronizeRequest& request =
        requests.emplace_back(WorkerCall(absl::StrCat("worker", i), 0));
    *Hold(request, leases[i]).mutable_completion() = completion;
  }
  const int64_t replaced = scheduler_->BeginCall("worker0");
  for (const v1::SynchronizeRequest& request : requests) {
    calls.push_back(
        {&request, scheduler_->BeginCall(request.participant_id())});
  }
  v1::SynchronizeRequest nameless;
  calls.insert(calls.begin() + 1, {&nameless, 0});
  calls.push_back({&requests[0], replaced});
  auto results = scheduler_->Synchronize(calls, now_);
  EXPECT_EQ(commits, 1);
  ASSERT_EQ(results.size(), kWorkers + 2);
  EXPECT_THAT(results[1], StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(results.back(), StatusIs(absl::StatusCode::kAborted, _));
  results.erase(results.begin() + 1);
  for (size_t i = 0; i < kWorkers; ++i) {
    OPTFARM_ASSERT_OK(results[i].status());
    const v1::TaskVerdict& verdict = results[i]->response.verdicts(0);
    EXPECT_EQ(verdict.task_id(), leases[i].task_id());
    EXPECT_EQ(verdict.verdict(), v1::TaskVerdict::COMPLETION_ACCEPTED);
  }
  Restart();
  for (const std::string& job : jobs) EXPECT_EQ(State(job), v1::SUCCEEDED);
}

TEST_F(SchedulerTest, KeepsEveryEventInOrder) {
  const std::string job = SubmitOk(Spec());
  Complete(LeaseToWorker(), GoodReport());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto events,
                               store_->ReadEvents(job, 0, 100, true));
  std::vector<std::string> story;
  for (const v1::JobEvent& event : events) {
    story.push_back(event.has_job_state()
                        ? v1::JobState_Name(event.job_state().state())
                        : v1::TaskState_Name(event.task_state().state()));
  }
  EXPECT_THAT(story, ::testing::ElementsAre("QUEUED", "LEASED", "RUNNING",
                                            "TASK_DONE", "SUCCEEDED"));
}

TEST_F(SchedulerTest, SubmitRetryWithSameRequestIdReturnsSameJob) {
  const v1::JobSpec spec = Spec();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const SubmitResult first, Submit(spec, "id-1"));
  Restart();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const SubmitResult second, Submit(spec, "id-1"));
  EXPECT_EQ(second.job_id, first.job_id);
  EXPECT_TRUE(second.existed);
  v1::JobSpec other = spec;
  other.set_name("another");
  EXPECT_THAT(Submit(other, "id-1"), StatusIs(absl::StatusCode::kAlreadyExists,
                                              HasSubstr(first.job_id)));
}

TEST_F(SchedulerTest, JobSurvivesRestart) {
  const std::string job = SubmitOk(Spec());
  Restart();
  const v1::LeasedTask lease = LeaseToWorker();
  EXPECT_EQ(lease.job_id(), job);
}

TEST_F(SchedulerTest, LeaseSurvivesRestart) {
  const std::string job = SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker();
  now_ += absl::Hours(0.5);
  Restart();
  scheduler_->Tick(now_);
  EXPECT_EQ(KeepAlive(lease).verdict(), v1::TaskVerdict::CONTINUE);
  EXPECT_EQ(Complete(lease, GoodReport()).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(State(job), v1::SUCCEEDED);
}

TEST_F(SchedulerTest, RequeuesTaskWhenLeaseExpires) {
  const std::string job = SubmitOk(Spec());
  LeaseToWorker();
  const absl::Time due = scheduler_->Tick(now_);
  EXPECT_EQ(due, now_ + options_.lease);
  now_ += options_.lease;
  scheduler_->Tick(now_);
  const storage::TaskRecord task = Task(job, 0);
  EXPECT_EQ(task.state, v1::READY);
  EXPECT_EQ(task.failed_attempts, 1);
  // Backing off.
  EXPECT_THAT(Call(WorkerCall("worker-2")).new_tasks(), IsEmpty());
  now_ += options_.retry_base;
  EXPECT_EQ(LeaseToWorker("worker-2").attempt(), 2);
}

TEST_F(SchedulerTest, RenewedLeaseDoesNotExpire) {
  const std::string job = SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker();
  for (int i = 0; i < 10; ++i) {
    now_ += options_.lease * 0.9;
    EXPECT_EQ(KeepAlive(lease).verdict(), v1::TaskVerdict::CONTINUE);
    scheduler_->Tick(now_);
  }
  EXPECT_EQ(Task(job, 0).attempt, 1);
}

TEST_F(SchedulerTest, RefusesCompletionWithStaleAttempt) {
  const std::string job = SubmitOk(Spec());
  const v1::LeasedTask first = LeaseToWorker();
  now_ += options_.lease;
  scheduler_->Tick(now_);
  now_ += options_.retry_base;
  // Not leased again yet: stale already.
  EXPECT_EQ(Complete(first, GoodReport()).verdict(), v1::TaskVerdict::STALE);
  const v1::LeasedTask second = LeaseToWorker("worker-2");
  EXPECT_EQ(Complete(first, GoodReport()).verdict(), v1::TaskVerdict::STALE);
  EXPECT_EQ(State(job), v1::RUNNING);
  EXPECT_EQ(Complete(second, GoodReport(), "worker-2").verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  // After the job has ended, too.
  EXPECT_EQ(Complete(first, GoodReport()).verdict(), v1::TaskVerdict::STALE);
  EXPECT_EQ(State(job), v1::SUCCEEDED);
}

TEST_F(SchedulerTest, RefusesCompletionOfSomebodyElsesLease) {
  SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker();
  EXPECT_EQ(Complete(lease, GoodReport(), "worker-2").verdict(),
            v1::TaskVerdict::STALE);
}

TEST_F(SchedulerTest, RepeatedCompletionIsAcceptedAgainAndTakenOnce) {
  const std::string job = SubmitOk(Spec({}));
  const v1::LeasedTask lease = LeaseToWorker();
  Complete(lease, GoodReport());
  const int64_t events = Job(job).last_event_sequence;
  EXPECT_EQ(Complete(lease, GoodReport()).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  Restart();
  EXPECT_EQ(Complete(lease, GoodReport()).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(Job(job).last_event_sequence, events);
}

TEST_F(SchedulerTest, TellsLeaseAgainWhoseAnswerGotLost) {
  SubmitOk(Spec());
  const v1::LeasedTask lost = LeaseToWorker();
  now_ += absl::Seconds(1);
  const v1::LeasedTask again = LeaseToWorker();
  EXPECT_EQ(again.task_id(), lost.task_id());
  EXPECT_EQ(again.attempt(), 1);
}

TEST_F(SchedulerTest, TakesUnseenLeaseBackWhenThereIsNoRoomForIt) {
  const std::string job = SubmitOk(Spec());
  LeaseToWorker();
  EXPECT_THAT(Call(WorkerCall("worker-1", 0)).new_tasks(), IsEmpty());
  const storage::TaskRecord task = Task(job, 0);
  EXPECT_EQ(task.state, v1::READY);
  EXPECT_EQ(task.failed_attempts, 0);
  EXPECT_EQ(LeaseToWorker("worker-2").attempt(), 2);
}

TEST_F(SchedulerTest, RequeuesTaskThatItsHolderDropped) {
  const std::string job = SubmitOk(Spec());
  KeepAlive(LeaseToWorker());
  Call(WorkerCall());
  EXPECT_EQ(Task(job, 0).state, v1::READY);
  EXPECT_EQ(Task(job, 0).failed_attempts, 1);
}

TEST_F(SchedulerTest, RefusesOlderOfTwoCalls) {
  const int64_t older = scheduler_->BeginCall("worker-1");
  Call(WorkerCall());
  EXPECT_THAT(scheduler_->Synchronize(WorkerCall(), older, now_),
              StatusIs(absl::StatusCode::kAborted, _));
}

TEST_F(SchedulerTest, UserErrorFailsJobWithoutRetry) {
  const std::string job = SubmitOk(Spec({}));
  EXPECT_EQ(Complete(LeaseToWorker(), Failing(v1::Failure::USER)).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  const storage::StoredJob ended = Job(job);
  EXPECT_EQ(ended.job.state, v1::FAILED);
  EXPECT_EQ(ended.job.failure->kind(), v1::Failure::USER);
  EXPECT_EQ(ended.job.failure->message(), "what happened");
  EXPECT_EQ(ended.tasks[0].attempt, 1);
}

TEST_F(SchedulerTest, InternalErrorsAreRetriedWithBackOffUntilAttemptsAreUsed) {
  const std::string job = SubmitOk(Spec());
  absl::Duration wait = options_.retry_base;
  for (int attempt = 1; attempt <= options_.max_attempts; ++attempt) {
    const v1::LeasedTask lease = LeaseToWorker();
    EXPECT_EQ(lease.attempt(), attempt);
    Complete(lease, Failing(v1::Failure::INTERNAL));
    if (attempt == options_.max_attempts) break;
    EXPECT_EQ(Task(job, 0).state, v1::READY);
    now_ += wait - absl::Milliseconds(1);
    EXPECT_THAT(Call(WorkerCall()).new_tasks(), IsEmpty());
    now_ += absl::Milliseconds(1);
    wait *= 2;
  }
  EXPECT_EQ(State(job), v1::FAILED);
  EXPECT_EQ(Job(job).job.failure->kind(), v1::Failure::INTERNAL);
}

// They are in nobody's way until then.
TEST_F(SchedulerTest, NobodyLooksAtTasksThatWaitForARetry) {
  options_.retry_base = options_.retry_max = absl::Hours(1);
  v1::JobSpec spec;
  const auto looks_of_a_call = [&](int waiting) {
    TearDown();
    SetUp();
    spec = Spec();
    spec.set_no_cache(true);
    for (int i = 0; i < waiting; ++i) {
      SubmitOk(spec);
      Complete(LeaseToWorker(), Failing(v1::Failure::INTERNAL));
    }
    const std::string ready = SubmitOk(spec);
    const int64_t before = scheduler_->Numbers(now_).task_looks;
    EXPECT_EQ(LeaseToWorker().job_id(), ready);
    EXPECT_TRUE(Call(WorkerCall("other")).new_tasks().empty());
    return scheduler_->Numbers(now_).task_looks - before;
  };
  const int64_t few = looks_of_a_call(2);
  EXPECT_EQ(looks_of_a_call(40), few);
}

TEST_F(SchedulerTest, TasksComeBackFromARetrysWaitInTheOrderOfTheirAge) {
  v1::JobSpec spec = Spec();
  spec.set_no_cache(true);
  std::vector<std::string> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(SubmitOk(spec));
  const v1::LeasedTask first = LeaseToWorker("first");
  const v1::LeasedTask second = LeaseToWorker("second");
  // The younger one fails first, and so is due first.
  Complete(second, Failing(v1::Failure::INTERNAL), "second");
  now_ += absl::Seconds(1);
  Complete(first, Failing(v1::Failure::INTERNAL), "first");
  storage::StoredJob explained = Job(jobs[1]);
  scheduler_->ExplainWaits(explained, now_);
  EXPECT_EQ(explained.tasks[0].progress_message, "tried again in 1s");
  explained = Job(jobs[3]);
  scheduler_->ExplainWaits(explained, now_);
  EXPECT_THAT(explained.tasks[0].progress_message,
              HasSubstr("older tasks of its project: 1"));
  EXPECT_EQ(LeaseToWorker("third").job_id(), jobs[2]);
  now_ += options_.retry_base;
  explained = Job(jobs[3]);
  scheduler_->ExplainWaits(explained, now_);
  EXPECT_THAT(explained.tasks[0].progress_message,
              HasSubstr("older tasks of its project: 2"));
  for (const size_t next : {0, 1, 3}) {
    EXPECT_EQ(LeaseToWorker(absl::StrCat("other-", next)).job_id(), jobs[next]);
  }
}

TEST_F(SchedulerTest, HandedBackTaskIsReadyAtOnceAndDoesNotCountAsFailed) {
  const std::string job = SubmitOk(Spec());
  v1::Completion released;
  released.mutable_released()->set_reason("shutting down");
  EXPECT_EQ(Complete(LeaseToWorker(), released).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(Task(job, 0).failed_attempts, 0);
  EXPECT_EQ(LeaseToWorker("worker-2").attempt(), 2);
}

TEST_F(SchedulerTest, MissingBlobsAreAskedForAndTheLeaseGoesOn) {
  const std::string job = SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker();
  v1::Completion completion = GoodReport();
  v1::Artifact& artifact = *completion.add_artifacts();
  artifact.set_name("task.log");
  artifact.mutable_digest()->set_sha256(Sha256Hex("log"));
  artifact.mutable_digest()->set_size_bytes(3);
  const v1::TaskVerdict refused = Complete(lease, completion);
  EXPECT_EQ(refused.verdict(), v1::TaskVerdict::COMPLETION_REFUSED);
  ASSERT_EQ(refused.missing_blobs_size(), 1);
  EXPECT_EQ(refused.missing_blobs(0).sha256(), Sha256Hex("log"));
  EXPECT_TRUE(refused.has_lease_remaining());
  Put("log");
  EXPECT_EQ(Complete(lease, completion).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(State(job), v1::SUCCEEDED);
}

TEST_F(SchedulerTest, MalformedCompletionCostsItsAttemptOnly) {
  const std::string job = SubmitOk(Spec());
  v1::Completion no_outcome;
  v1::Completion wrong_kind = GoodBenchmark();
  v1::Completion bad_name = GoodReport();
  bad_name.mutable_report()->mutable_artifacts(0)->set_name("../../etc/passwd");
  for (const v1::Completion& bad : {no_outcome, wrong_kind, bad_name}) {
    const v1::TaskVerdict verdict = Complete(LeaseToWorker(), bad);
    EXPECT_EQ(verdict.verdict(), v1::TaskVerdict::COMPLETION_REFUSED);
    EXPECT_FALSE(verdict.message().empty());
    now_ += options_.retry_max;
  }
  EXPECT_EQ(State(job), v1::FAILED);
  EXPECT_EQ(Job(job).job.failure->kind(), v1::Failure::INTERNAL);
}

TEST_F(SchedulerTest, AReportTellsOfEachFormatThatIsAskedFor) {
  v1::JobSpec spec = Spec();
  spec.add_out_formats(v1::TFLITE);
  v1::SynchronizeRequest writer = WorkerCall();
  writer.set_writes_out_formats(true);
  const std::string job = SubmitOk(spec);
  v1::Completion silent = GoodReport();
  v1::Completion without_file = GoodReport();
  v1::ExportedModel& made = *without_file.mutable_report()->add_exports();
  made.set_format(v1::TFLITE);
  made.set_artifact("optimized.tflite");
  v1::Completion without_reason = without_file;
  without_reason.mutable_report()->mutable_exports(0)->clear_artifact();
  for (const v1::Completion& bad : {silent, without_file, without_reason}) {
    EXPECT_EQ(Complete(Lease(writer), bad).verdict(),
              v1::TaskVerdict::COMPLETION_REFUSED);
    now_ += options_.retry_max;
  }
  EXPECT_EQ(State(job), v1::FAILED);
  const std::string other = SubmitOk(spec);
  v1::Completion good = without_reason;
  good.mutable_report()->mutable_exports(0)->add_problems("Foo: not known");
  EXPECT_EQ(Complete(Lease(writer), good).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(State(other), v1::SUCCEEDED);
}

TEST_F(SchedulerTest, CancelReachesTheHolderAndFreesTheJob) {
  const std::string job = SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker();
  ASSERT_THAT(scheduler_->Cancel(job, "changed my mind", now_), IsOk());
  EXPECT_EQ(State(job), v1::CANCELLED);
  EXPECT_EQ(Task(job, 0).state, v1::TASK_CANCELLED);
  EXPECT_EQ(KeepAlive(lease).verdict(), v1::TaskVerdict::CANCEL);
  EXPECT_EQ(Complete(lease, GoodReport()).verdict(), v1::TaskVerdict::CANCEL);
  EXPECT_EQ(State(job), v1::CANCELLED);
  // Again: no change and no error.
  EXPECT_THAT(scheduler_->Cancel(job, "", now_), IsOk());
  EXPECT_THAT(scheduler_->Cancel("nope", "", now_),
              StatusIs(absl::StatusCode::kNotFound, _));
}

// A device may wait to be cool and idle, but not for ever, and what it waits
// for is told.
TEST_F(SchedulerTest, AnAttemptThatNeverBeginsToWorkIsGivenUp) {
  options_.provision_limit = absl::Minutes(2);
  Restart();
  Call(AgentCall());
  v1::JobSpec spec = Spec({"pi4"});
  spec.mutable_benchmark()->mutable_cool_down()->set_seconds(60);
  const std::string job = SubmitOk(spec);
  Complete(LeaseToWorker(), GoodReport());
  const v1::LeasedTask lease = Lease(AgentCall());
  const auto keep_alive = [&](double progress) {
    v1::SynchronizeRequest request = AgentCall("pi4", false);
    v1::HeldTask& held = Hold(request, lease);
    held.set_progress(progress);
    held.set_progress_message("waiting: 80 degrees are too hot");
    now_ += absl::Seconds(20);
    const auto verdict = Call(request).verdicts(0).verdict();
    scheduler_->Tick(now_);
    return verdict;
  };
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(keep_alive(0), v1::TaskVerdict::CONTINUE);
  }
  EXPECT_EQ(Task(job, 1).state, v1::READY);
  EXPECT_THAT(Task(job, 1).failure->message(),
              AllOf(HasSubstr("had not begun to work after 3m"),
                    HasSubstr("80 degrees are too hot")));
  EXPECT_EQ(keep_alive(0), v1::TaskVerdict::STALE);
}

TEST_F(SchedulerTest, EveryStateHasADeadline) {
  options_.queue_limit = absl::Hours(1);
  options_.run_limit = absl::Minutes(10);
  options_.job_limit = absl::Hours(3);
  Restart();
  const std::string waiting = SubmitOk(Spec());
  now_ += absl::Hours(1);
  scheduler_->Tick(now_);
  EXPECT_EQ(State(waiting), v1::FAILED);
  EXPECT_THAT(Job(waiting).job.failure->message(), HasSubstr("worker"));

  const std::string slow = SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker();
  for (int minute = 0; minute < 10; ++minute) {
    EXPECT_EQ(KeepAlive(lease).verdict(), v1::TaskVerdict::CONTINUE);
    for (int part = 0; part < 3; ++part) {
      now_ += absl::Seconds(20);
      KeepAlive(lease);
      scheduler_->Tick(now_);
    }
  }
  EXPECT_EQ(Task(slow, 0).state, v1::READY);
  EXPECT_THAT(Task(slow, 0).failure->message(), HasSubstr("10m"));
  EXPECT_EQ(KeepAlive(lease).verdict(), v1::TaskVerdict::STALE);

  const std::string endless = SubmitOk(Spec());
  now_ += absl::Hours(3);
  scheduler_->Tick(now_);
  EXPECT_EQ(State(endless), v1::FAILED);
  EXPECT_EQ(Job(endless).job.failure->code(), "DEADLINE_EXCEEDED");
}

TEST_F(SchedulerTest, DeadlinesOfTheJobWin) {
  v1::JobSpec spec = Spec();
  *spec.mutable_deadlines()->mutable_job() =
      rpc::ToProtoDuration(absl::Minutes(1));
  const std::string job = SubmitOk(spec);
  now_ += absl::Minutes(1);
  scheduler_->Tick(now_);
  EXPECT_EQ(State(job), v1::FAILED);
}

TEST_F(SchedulerTest, OldestJobFirstAndOnlyAsManyAsAskedFor) {
  const std::string first = SubmitOk(Spec());
  const std::string second = SubmitOk(Spec());
  const std::string third = SubmitOk(Spec());
  const v1::SynchronizeResponse response = Call(WorkerCall("worker-1", 2));
  ASSERT_EQ(response.new_tasks_size(), 2);
  EXPECT_EQ(response.new_tasks(0).job_id(), first);
  EXPECT_EQ(response.new_tasks(1).job_id(), second);
  EXPECT_EQ(LeaseToWorker("worker-2").job_id(), third);
}

TEST_F(SchedulerTest, ProgressAndLogBecomeEventsOnce) {
  const std::string job = SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker();
  v1::SynchronizeRequest request = WorkerCall("worker-1", 0);
  v1::HeldTask& held = Hold(request, lease);
  held.set_progress(0.5);
  held.set_progress_message("calibrating");
  held.set_log_chunk("line 1\nbad \xff byte\n");
  Call(request);
  Call(request);  // the answer got lost
  held.set_log_chunk("line 1\nbad \xff byte\nline 3\n");
  Call(request);
  EXPECT_EQ(Task(job, 0).progress, 0.5);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto events,
                               store_->ReadEvents(job, 0, 100, true));
  std::string log;
  int progress = 0;
  for (const v1::JobEvent& event : events) {
    log += event.log().text();
    progress += event.has_progress() ? 1 : 0;
  }
  EXPECT_EQ(log, "line 1\nbad \xef\xbf\xbd byte\nline 3\n");
  EXPECT_EQ(progress, 1);
}

TEST_F(SchedulerTest, KeepsOnlySoMuchOfALog) {
  const std::string job = SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker();
  const std::string chunk(256 << 10, 'x');
  for (int i = 0; i < 20; ++i) {
    v1::SynchronizeRequest request = WorkerCall("worker-1", 0);
    v1::HeldTask& held = Hold(request, lease);
    held.set_log_chunk(chunk);
    held.set_log_offset(static_cast<int64_t>(chunk.size()) * i);
    Call(request);
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto events,
                               store_->ReadEvents(job, 0, 100, true));
  size_t size = 0;
  int notes = 0;
  for (const v1::JobEvent& event : events) {
    size += event.log().text().size();
    notes += event.log().text().find("[log cut here") != std::string::npos;
  }
  EXPECT_LT(size, (4u << 20) + 1000);
  EXPECT_EQ(notes, 1);
}

TEST_F(SchedulerTest, RefusesMoreLiveJobsThanAllowed) {
  options_.max_live_jobs = 1;
  Restart();
  SubmitOk(Spec());
  EXPECT_THAT(Submit(Spec()),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
}

TEST_F(SchedulerTest, PauseOfTheServerCostsNoLease) {
  const std::string job = SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker();
  now_ += absl::Minutes(30);
  scheduler_->ForgivePause(now_ - absl::Minutes(30), now_);
  scheduler_->Tick(now_);
  EXPECT_EQ(KeepAlive(lease).verdict(), v1::TaskVerdict::CONTINUE);
  EXPECT_EQ(Task(job, 0).attempt, 1);
}

TEST_F(SchedulerTest, TimeWithoutTheServerCountsForNoDeadline) {
  v1::JobSpec spec = Spec();
  spec.mutable_deadlines()->mutable_run()->set_seconds(600);
  spec.mutable_deadlines()->mutable_queue()->set_seconds(600);
  spec.mutable_deadlines()->mutable_job()->set_seconds(1200);
  const std::string running = SubmitOk(spec);
  const v1::LeasedTask lease = LeaseToWorker();
  spec.set_name("another");
  spec.set_no_cache(true);
  const std::string queued = SubmitOk(spec);
  now_ += absl::Seconds(300);
  EXPECT_EQ(KeepAlive(lease).verdict(), v1::TaskVerdict::CONTINUE);
  // A night without the server; then it goes on where it was.
  const AwayTime away = scheduler_->Away(now_);
  now_ += absl::Hours(8);
  Restart(away);
  scheduler_->Tick(now_);
  EXPECT_EQ(KeepAlive(lease).verdict(), v1::TaskVerdict::CONTINUE);
  EXPECT_EQ(State(queued), v1::QUEUED);
  EXPECT_EQ(State(running), v1::RUNNING);
  // Another such time, during which the process was only stopped.
  const absl::Time stopped = now_;
  now_ += absl::Hours(8);
  scheduler_->ForgivePause(stopped, now_);
  now_ += absl::Seconds(299);
  EXPECT_EQ(KeepAlive(lease).verdict(), v1::TaskVerdict::CONTINUE);
  scheduler_->Tick(now_);
  EXPECT_EQ(State(queued), v1::QUEUED);
  EXPECT_EQ(Task(running, 0).attempt, 1);
  EXPECT_EQ(Task(running, 0).failed_attempts, 0);
  // What the server was there for counts.
  now_ += absl::Seconds(1);
  scheduler_->Tick(now_);
  EXPECT_EQ(State(queued), v1::FAILED);
  EXPECT_EQ(Task(running, 0).failed_attempts, 1);
}

TEST_F(SchedulerTest, AClockThatIsSetBackKeepsNothingForEver) {
  v1::JobSpec spec = Spec();
  spec.mutable_deadlines()->mutable_queue()->set_seconds(600);
  const std::string queued = SubmitOk(spec);
  const absl::Time before = now_;
  now_ -= absl::Hours(24 * 365);
  scheduler_->ForgivePause(before, now_);
  scheduler_->Tick(now_);
  EXPECT_EQ(State(queued), v1::QUEUED);
  now_ += absl::Seconds(600);
  scheduler_->Tick(now_);
  EXPECT_EQ(State(queued), v1::FAILED);
}

TEST_F(SchedulerTest, WhoHandsFilesOverMayTakeLongerThanTheRun) {
  const std::string job = SubmitOk(Spec());
  const v1::LeasedTask lease = LeaseToWorker();
  const auto say = [&](double progress) {
    v1::SynchronizeRequest request = WorkerCall("worker-1", 0);
    Hold(request, lease).set_progress(progress);
    return Call(request).verdicts(0).verdict();
  };
  EXPECT_EQ(say(1), v1::TaskVerdict::CONTINUE);
  // The server's disk is full for hours.
  for (int i = 0; i < 3 * 60 * 4; ++i) {
    now_ += absl::Seconds(15);
    scheduler_->Tick(now_);
    ASSERT_EQ(say(1), v1::TaskVerdict::CONTINUE);
  }
  EXPECT_EQ(Task(job, 0).attempt, 1);
  EXPECT_EQ(Complete(lease, GoodReport()).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
}

TEST_F(SchedulerTest, ProjectsTakeTurnsAtWorkers) {
  const auto submit = [&](const std::string& project, int number) {
    v1::JobSpec spec = Spec();
    spec.set_name(absl::StrCat(project, number));
    spec.set_no_cache(true);
    Submission submission;
    submission.spec = spec;
    submission.spec_digest = Sha256Hex(spec.SerializeAsString());
    submission.action_digest = ActionDigest(spec);
    submission.project = project;
    const auto result = scheduler_->Submit(submission, now_);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->job_id : "";
  };
  for (int i = 0; i < 5; ++i) submit("large", i);
  const std::string small = submit("small", 0);
  const std::string tiny = submit("tiny", 0);
  // One worker, one task at a time: the others come after one of the first.
  std::vector<std::string> projects;
  for (int i = 0; i < 5; ++i) {
    now_ += absl::Seconds(1);
    const v1::LeasedTask lease = LeaseToWorker();
    projects.push_back(Job(lease.job_id()).job.project);
    Complete(lease, GoodReport());
  }
  EXPECT_THAT(projects, ::testing::ElementsAre("large", "small", "tiny",
                                               "large", "large"));
}

TEST_F(SchedulerTest, ProjectsShareWorkersThatComeTogether) {
  const auto submit = [&](const std::string& project, int number) {
    v1::JobSpec spec = Spec();
    spec.set_name(absl::StrCat(project, number));
    spec.set_no_cache(true);
    Submission submission;
    submission.spec = spec;
    submission.spec_digest = Sha256Hex(spec.SerializeAsString());
    submission.action_digest = ActionDigest(spec);
    submission.project = project;
    EXPECT_TRUE(scheduler_->Submit(submission, now_).ok());
  };
  for (int i = 0; i < 6; ++i) submit("large", i);
  for (int i = 0; i < 6; ++i) submit("small", i);
  std::map<std::string, int> leased;
  const v1::SynchronizeResponse four = Call(WorkerCall("worker-1", 4));
  for (const v1::LeasedTask& lease : four.new_tasks()) {
    ++leased[Job(lease.job_id()).job.project];
  }
  EXPECT_EQ(leased["large"], 2);
  EXPECT_EQ(leased["small"], 2);
  // Who waits is told why.
  storage::StoredJob waits;
  const auto jobs = store_->ListJobs({}, {0, 100});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  for (const storage::StoredJob& each : *jobs) {
    if (each.tasks[0].state == v1::READY) waits = each;
  }
  scheduler_->ExplainWaits(waits, now_);
  EXPECT_THAT(waits.tasks[0].progress_message,
              ::testing::HasSubstr("other projects that take turns: 1"));
}

TEST_F(SchedulerTest, NumbersFollowWhatHappens) {
  const auto expect = [this](int queued, int running, int ready, int leased,
                             absl::Duration oldest) {
    const QueueNumbers numbers = scheduler_->Numbers(now_);
    EXPECT_EQ(numbers.queued_jobs, queued);
    EXPECT_EQ(numbers.running_jobs, running);
    EXPECT_EQ(numbers.optimize.ready, ready);
    EXPECT_EQ(numbers.optimize.leased, leased);
    EXPECT_EQ(numbers.optimize.oldest, oldest);
  };
  v1::JobSpec spec = Spec();
  spec.set_no_cache(true);
  const absl::Time first = now_;
  expect(0, 0, 0, 0, absl::ZeroDuration());
  SubmitOk(spec);
  now_ += absl::Seconds(5);
  const std::string second = SubmitOk(spec);
  SubmitOk(spec);
  expect(3, 0, 3, 0, now_ - first);
  const v1::LeasedTask lease = LeaseToWorker();
  expect(2, 1, 2, 1, absl::ZeroDuration());
  now_ += absl::Seconds(1);
  KeepAlive(lease);
  expect(2, 1, 2, 1, absl::Seconds(1));
  // It is ready, though it may not be leased yet.
  Complete(lease, Failing(v1::Failure::INTERNAL));
  expect(2, 1, 3, 0, absl::Seconds(1));
  OPTFARM_ASSERT_OK(scheduler_->Cancel(second, "", now_));
  expect(1, 1, 2, 0, absl::Seconds(1));
  Restart();
  expect(1, 1, 2, 0, absl::Seconds(1));
  now_ += options_.retry_base;
  Complete(LeaseToWorker(), GoodReport());
  expect(1, 0, 1, 0, absl::Seconds(1) + options_.retry_base);
  // A clock that was set back makes what is to come current.
  now_ = first;
  scheduler_->ForgivePause(first + absl::Seconds(8), now_);
  expect(1, 0, 1, 0, absl::ZeroDuration());
  Complete(LeaseToWorker(), GoodReport());
  expect(0, 0, 0, 0, absl::ZeroDuration());
}

TEST_F(SchedulerTest, DrainHandsOutNothing) {
  SubmitOk(Spec());
  scheduler_->Drain();
  const v1::SynchronizeResponse response = Call(WorkerCall());
  EXPECT_TRUE(response.drain());
  EXPECT_THAT(response.new_tasks(), IsEmpty());
}

TEST_F(SchedulerTest, RefusesCallersWithImpossibleNames) {
  for (const std::string bad : {"", "a b", "../x", "\n"}) {
    v1::SynchronizeRequest request = WorkerCall();
    request.set_participant_id(bad);
    EXPECT_THAT(scheduler_->Synchronize(request, 1, now_),
                StatusIs(absl::StatusCode::kInvalidArgument, _));
  }
}

TEST_F(SchedulerTest, OffersWorkersRecipesByName) {
  v1::SynchronizeRequest request = WorkerCall();
  request.add_builtin_recipes()->set_name("int8");
  request.add_builtin_recipes()->set_name("weights8");
  Call(request);
  Restart();
  EXPECT_THAT(scheduler_->FindRecipe("int8"), IsOk());
  EXPECT_THAT(scheduler_->FindRecipe("int9"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'int8'")));
}

}  // namespace
}  // namespace optfarm::server
