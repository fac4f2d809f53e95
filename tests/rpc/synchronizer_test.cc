// The loop against a server of the test's own: what it asks, what it does with
// the answers, and how it outlives a server that goes away.

#include "rpc/synchronizer.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "rpc/proto_time.h"
#include "tests/rpc/fake_model_service.h"
#include "tests/support/status_matchers.h"

namespace optfarm::rpc {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;

// Answers every call with what `answer` says and remembers the requests.
class FakeWorkService final : public v1::WorkService::Service {
 public:
  using Answer = std::function<grpc::Status(const v1::SynchronizeRequest&,
                                            v1::SynchronizeResponse*)>;

  grpc::Status Synchronize(grpc::ServerContext* context,
                           const v1::SynchronizeRequest* request,
                           v1::SynchronizeResponse* response) override {
    Answer answer;
    bool is_poll =
        request->has_long_poll() && request->long_poll().seconds() > 0;
    {
      absl::MutexLock lock(&mutex_);
      requests_.push_back(*request);
      answer = answer_;
      ++answering_;
      is_poll = is_poll && (holds_calls_ || !answer);
      for (const v1::HeldTask& held : request->held()) {
        v1::TaskVerdict& verdict = *response->add_verdicts();
        verdict.set_task_id(held.task_id());
        verdict.set_attempt(held.attempt());
        verdict.set_verdict(held.has_completion()
                                ? v1::TaskVerdict::COMPLETION_ACCEPTED
                                : v1::TaskVerdict::CONTINUE);
      }
    }
    const grpc::Status status =
        answer ? answer(*request, response) : grpc::Status::OK;
    {
      absl::MutexLock lock(&mutex_);
      --answering_;
    }
    bool has_news = !response->new_tasks().empty();
    for (const v1::HeldTask& held : request->held()) {
      has_news = has_news || held.has_completion();
    }
    // Nothing to say: the long poll lasts until the client has enough.
    while (is_poll && !has_news && !context->IsCancelled()) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return status;
  }

  void SetAnswer(Answer answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }

  // Returns when no answer is asked for any more, nor will be: what it refers
  // to may go. A call that its client has given up may still have been on its
  // way.
  void EndAnswers() {
    absl::MutexLock lock(&mutex_);
    answer_ = nullptr;
    const auto none = [this] { return answering_ == 0; };
    mutex_.Await(absl::Condition(&none));
  }

  // Long polls without news last until the client has enough even where
  // there is an answer for them.
  void HoldCalls() {
    absl::MutexLock lock(&mutex_);
    holds_calls_ = true;
  }

  // Blocks until a request satisfies `wanted`.
  v1::SynchronizeRequest Await(
      const std::function<bool(const v1::SynchronizeRequest&)>& wanted) {
    size_t at = 0;
    absl::MutexLock lock(&mutex_);
    while (true) {
      for (; at < requests_.size(); ++at) {
        if (wanted(requests_[at])) return requests_[at];
      }
      const auto more = [&] { return requests_.size() > at; };
      mutex_.Await(absl::Condition(&more));
    }
  }

 private:
  absl::Mutex mutex_;
  Answer answer_;
  int answering_ = 0;
  bool holds_calls_ = false;
  std::vector<v1::SynchronizeRequest> requests_;
};

class SynchronizerTest : public ::testing::Test {
 protected:
  SynchronizerTest() {
    options_.identity.set_participant_id(NewParticipantId());
    options_.identity.set_name("w1");
    options_.identity.set_kind(v1::SynchronizeRequest::WORKER);
    options_.identity.add_builtin_recipes()->set_name("int8");
    options_.free_slots = [] { return 1; };
    options_.on_ready = [this] { ++ready_; };
    options_.on_lease = [this](std::shared_ptr<HeldTask> task) {
      absl::MutexLock lock(&mutex_);
      leased_.push_back(std::move(task));
    };
    // Pauses take no time of the machine's, so the grace is one of many calls.
    options_.clock = &clock_;
    options_.shutdown_grace = absl::Hours(1);
  }
  ~SynchronizerTest() override { Stop(); }

  void Start() {
    loop_ = std::make_unique<Synchronizer>(stub_.get(), options_);
    thread_ = std::thread([this] { result_ = loop_->Run(); });
  }

  void Stop() {
    if (!thread_.joinable()) return;
    loop_->Shutdown();
    AwaitEnd();
  }

  // Until the loop has ended and nothing asks the test any more.
  void AwaitEnd() {
    thread_.join();
    service_.EndAnswers();
  }

  std::shared_ptr<HeldTask> AwaitLease() {
    absl::MutexLock lock(&mutex_);
    const auto come = [this] { return !leased_.empty(); };
    mutex_.Await(absl::Condition(&come));
    return leased_.front();
  }

  // Grants "job-1" once, for that long.
  void OfferOneTask(absl::Duration term = absl::Minutes(1)) {
    service_.SetAnswer([this, term](const v1::SynchronizeRequest& request,
                                    v1::SynchronizeResponse* response) {
      if (request.free_slots() > 0 && !std::exchange(granted_, true)) {
        v1::LeasedTask& lease = *response->add_new_tasks();
        lease.set_task_id("job-1");
        lease.set_attempt(1);
        *lease.mutable_lease_duration() = ToProtoDuration(term);
      }
      return grpc::Status::OK;
    });
  }

  FakeWorkService service_;
  LocalServer server_{&service_};
  std::unique_ptr<v1::WorkService::Stub> stub_ =
      v1::WorkService::NewStub(server_.channel());
  FakeClock clock_{absl::UnixEpoch()};
  SynchronizerOptions options_;
  int ready_ = 0;
  bool granted_ = false;
  absl::Status result_;
  absl::Mutex mutex_;
  std::vector<std::shared_ptr<HeldTask>> leased_;
  std::unique_ptr<Synchronizer> loop_;
  std::thread thread_;
};

TEST_F(SynchronizerTest, SaysWhoItIsAndBringsRecipesOnce) {
  Start();
  const auto first = service_.Await([](const auto&) { return true; });
  EXPECT_EQ(first.name(), "w1");
  EXPECT_EQ(first.free_slots(), 1);
  EXPECT_EQ(first.builtin_recipes_size(), 1);
  service_.Await([](const v1::SynchronizeRequest& request) {
    return request.builtin_recipes().empty() &&
           request.long_poll().seconds() == 30;
  });
  Stop();
  EXPECT_THAT(result_, IsOk());
  EXPECT_EQ(ready_, 1);
}

TEST_F(SynchronizerTest, ACompletionInterruptsTheLongPoll) {
  OfferOneTask();
  service_.HoldCalls();
  options_.held_poll = absl::Hours(1);
  Start();
  const auto task = AwaitLease();
  service_.Await(
      [](const v1::SynchronizeRequest& r) { return r.held_size() == 1; });
  v1::Completion completion;
  completion.mutable_report();
  task->Complete(completion);
  EXPECT_EQ(task->AwaitDecision().kind, Decision::Kind::kAccepted);
}

TEST_F(SynchronizerTest, ShutdownGivesTasksBackAndTakesNoMore) {
  OfferOneTask();
  Start();
  const auto task = AwaitLease();
  std::thread worker([&] {
    while (!task->ShouldStop()) absl::SleepFor(absl::Milliseconds(1));
    v1::Completion completion;
    completion.mutable_released()->set_reason("shutting down");
    task->Complete(completion);
    task->AwaitDecision();
  });
  Stop();
  worker.join();
  EXPECT_THAT(result_, IsOk());
  const auto last = service_.Await([](const v1::SynchronizeRequest& request) {
    return request.held_size() == 1 && request.held(0).has_completion();
  });
  EXPECT_TRUE(last.held(0).completion().has_released());
  EXPECT_EQ(last.free_slots(), 0);
}

TEST_F(SynchronizerTest, ShutdownWaitsItsGraceForTasksAndNoLonger) {
  OfferOneTask();
  options_.shutdown_grace = absl::Seconds(10);
  Start();
  const auto task = AwaitLease();
  const absl::Time begin = clock_.Now();
  Stop();
  EXPECT_THAT(result_, IsOk());
  EXPECT_GE(clock_.Now() - begin, absl::Seconds(10));
  EXPECT_EQ(task->AwaitDecision().kind, Decision::Kind::kDropped);
}

TEST_F(SynchronizerTest, OutlivesAServerThatIsAwayAndTellsRecipesAgain) {
  Start();
  service_.Await([](const v1::SynchronizeRequest& request) {
    return request.builtin_recipes().empty();
  });
  std::atomic<int> refused = 0;
  service_.SetAnswer([&](const auto&, auto*) {
    return ++refused > 3 ? grpc::Status::OK
                         : grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  });
  loop_->Wake();
  bool connected = false;
  bool again = false;
  service_.Await([&](const v1::SynchronizeRequest& request) {
    const bool recipes = !request.builtin_recipes().empty();
    connected = connected || !recipes;
    again = again || (connected && recipes);
    return again && !recipes;
  });
  Stop();
  EXPECT_THAT(result_, IsOk());
  EXPECT_EQ(ready_, 1);
}

// A server that comes back gives each lease one more term.
TEST_F(SynchronizerTest, CallsAnAbsentServerSeveralTimesInTheTermOfItsLease) {
  constexpr absl::Duration kTerm = absl::Seconds(3);
  constexpr size_t kCalls = 5;
  // Far apart, if nothing were held.
  options_.backoff = {absl::Hours(1), absl::Hours(1)};
  OfferOneTask(kTerm);
  Start();
  const auto task = AwaitLease();
  absl::Mutex mutex;
  std::vector<absl::Time> calls;
  service_.SetAnswer([&](const v1::SynchronizeRequest& request, auto*) {
    absl::MutexLock lock(&mutex);
    if (request.held().empty() || calls.size() == kCalls) {
      return grpc::Status::OK;
    }
    calls.push_back(clock_.Now());
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  });
  {
    absl::MutexLock lock(&mutex);
    const auto all = [&] { return calls.size() == kCalls; };
    mutex.Await(absl::Condition(&all));
    EXPECT_LT(calls.back() - calls.front(), kTerm);
  }
  v1::Completion completion;
  completion.mutable_report();
  task->Complete(completion);
  EXPECT_EQ(task->AwaitDecision().kind, Decision::Kind::kAccepted);
  Stop();
}

TEST_F(SynchronizerTest, AServerThatRefusesUsFromTheStartEndsTheLoop) {
  service_.SetAnswer([](const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "token please");
  });
  Start();
  AwaitEnd();
  EXPECT_THAT(result_, StatusIs(absl::StatusCode::kUnauthenticated,
                                ::testing::HasSubstr("token")));
  EXPECT_EQ(ready_, 0);
}

TEST_F(SynchronizerTest, DrainMeansNoFreeSlots) {
  service_.SetAnswer([](const auto&, v1::SynchronizeResponse* response) {
    response->set_drain(true);
    return grpc::Status::OK;
  });
  Start();
  service_.Await(
      [](const v1::SynchronizeRequest& r) { return r.free_slots() == 0; });
}

TEST_F(SynchronizerTest, EndsAfterItHadNoTaskForSoLong) {
  service_.SetAnswer([](const auto&, auto*) { return grpc::Status::OK; });
  options_.exit_when_idle = absl::Seconds(10);
  const absl::Time begin = clock_.Now();
  Start();
  AwaitEnd();
  EXPECT_THAT(result_, IsOk());
  EXPECT_GE(clock_.Now() - begin, absl::Seconds(10));
  EXPECT_LT(clock_.Now() - begin, absl::Seconds(11));
}

TEST_F(SynchronizerTest, IsNotIdleWithATaskOrWithoutAServer) {
  OfferOneTask();
  options_.exit_when_idle = absl::Seconds(10);
  Start();
  const auto task = AwaitLease();
  const auto held = [](const v1::SynchronizeRequest& request) {
    return request.held_size() == 1;
  };
  service_.Await(held);
  clock_.Advance(absl::Hours(1));
  int calls = 0;
  service_.Await([&](const auto& r) { return held(r) && ++calls == 20; });
  // From now on there is no server for three hours.
  std::atomic<int> refused = 0;
  std::atomic<int64_t> back_at = 0;
  service_.SetAnswer([&](const auto&, auto*) {
    if (++refused > 3) return grpc::Status::OK;
    clock_.Advance(absl::Hours(1));
    back_at = absl::ToUnixNanos(clock_.Now());
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  });
  v1::Completion completion;
  completion.mutable_released();
  task->Complete(completion);
  EXPECT_EQ(task->AwaitDecision().kind, Decision::Kind::kAccepted);
  AwaitEnd();
  EXPECT_THAT(result_, IsOk());
  EXPECT_GE(clock_.Now() - absl::FromUnixNanos(back_at), absl::Seconds(10));
}

TEST_F(SynchronizerTest, AServerThatAnswersAtOnceIsNotFlooded) {
  service_.SetAnswer([](const auto&, auto*) { return grpc::Status::OK; });
  const absl::Time begin = clock_.Now();
  Start();
  int calls = 0;
  service_.Await([&](const auto&) { return ++calls == 4; });
  EXPECT_GE(clock_.Now() - begin, 3 * absl::Milliseconds(100));
}

TEST(ParticipantNameTest, IsMadeOfAllowedCharacters) {
  EXPECT_EQ(CleanName("build host/7"), "build-host-7");
  EXPECT_EQ(CleanName("-x"), "x-x");
  EXPECT_EQ(CleanName(""), "x");
  EXPECT_EQ(CleanName(std::string(100, 'a')).size(), 64u);
  EXPECT_EQ(NewParticipantId().size(), 32u);
  EXPECT_NE(NewParticipantId(), NewParticipantId());
}

}  // namespace
}  // namespace optfarm::rpc
