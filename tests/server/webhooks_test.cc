// Webhooks: told once when a job ends, signed, tried again, and to nobody that
// the operator did not allow.

#include "server/delivery/webhooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/hmac.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::Pair;

class WebhooksTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.webhooks.allowed = {"hooks.test", "other.test:8080"};
    options_.webhooks.secret = "key";
    options_.webhooks.post =
        [this](const http::PostRequest& request) -> absl::StatusOr<int> {
      absl::MutexLock lock(&mutex_);
      sent_.push_back(request);
      return answer_;
    };
    ServerFixture::SetUp();
  }
  v1::SubmitJobRequest WithWebhook(const std::string& url) {
    v1::SubmitJobRequest request = GoodSubmit();
    request.mutable_spec()->set_no_cache(true);
    request.set_webhook(url);
    return request;
  }
  void SetAnswer(absl::StatusOr<int> answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  void AwaitSent(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return sent_.size() >= count;
    };
    ASSERT_TRUE(
        mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(60)));
  }
  size_t Sent() {
    absl::MutexLock lock(&mutex_);
    return sent_.size();
  }
  http::PostRequest Last() {
    absl::MutexLock lock(&mutex_);
    return sent_.empty() ? http::PostRequest() : sent_.back();
  }

  absl::Mutex mutex_;
  std::vector<http::PostRequest> sent_ ABSL_GUARDED_BY(mutex_);
  absl::StatusOr<int> answer_ ABSL_GUARDED_BY(mutex_) = 204;
};

TEST_F(WebhooksTest, TellTheEndOfAJobSigned) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job,
                               Submit(WithWebhook("https://hooks.test/a?b=c")));
  EXPECT_EQ(Sent(), 0u);
  RunOptimize();
  AwaitSent(1);
  const http::PostRequest request = Last();
  EXPECT_EQ(request.url.host, "hooks.test");
  EXPECT_EQ(request.url.target, "/a?b=c");
  const auto json = nlohmann::json::parse(request.body);
  EXPECT_EQ(json["type"], "optfarm.job.ended");
  EXPECT_EQ(json["id"], job.job_id());
  EXPECT_EQ(json["data"]["state"], "SUCCEEDED");
  const std::string time = absl::StrCat(absl::ToUnixSeconds(clock_.Now()));
  EXPECT_THAT(
      request.headers,
      ::testing::UnorderedElementsAre(
          Pair("Optfarm-Timestamp", time),
          Pair("Optfarm-Signature",
               absl::StrCat(
                   "v1=", HmacSha256Hex(
                              "key", absl::StrCat(time, ".", request.body))))));
  // Neither a restart nor a retry of the submit tells it again.
  Restart();
  server_->Wake();
  EXPECT_EQ(Sent(), 1u);
}

TEST_F(WebhooksTest, AreTriedAgainAlsoAfterARestart) {
  SetAnswer(absl::UnavailableError("nobody there"));
  ASSERT_THAT(Submit(WithWebhook("http://other.test:8080/")), IsOk());
  RunOptimize();
  AwaitSent(1);
  SetAnswer(500);
  Restart();
  clock_.Advance(absl::Seconds(11));
  server_->Wake();
  AwaitSent(2);
  SetAnswer(200);
  clock_.Advance(absl::Seconds(21));
  server_->Wake();
  AwaitSent(3);
  EXPECT_EQ(Last().url.Authority(), "other.test:8080");
}

TEST_F(WebhooksTest, AJobThatEndedWhileTheServerWasDownIsTold) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job,
                               Submit(WithWebhook("http://hooks.test/")));
  // Its deadlines pass before the next start looks at it: an earlier version
  // did not note when it ran, so that all of the time counts.
  server_.reset();
  std::filesystem::remove(JoinPath(options_.data_dir, "uptime"));
  clock_.Advance(absl::Hours(49));
  Restart();
  server_->Wake();
  ASSERT_NO_FATAL_FAILURE(AwaitSent(1));
  EXPECT_EQ(nlohmann::json::parse(Last().body)["data"]["state"], "FAILED");
}

TEST_F(WebhooksTest, NothingIsSentWhereTheOperatorDidNotAllowIt) {
  for (const char* url : {"http://127.0.0.1/", "http://other.test/",
                          "http://other.test:81/", "http://evil.hooks.test/",
                          "http://hooks.test.evil/", "http://[::1]:8080/"}) {
    EXPECT_THAT(Submit(WithWebhook(url)),
                StatusIs(absl::StatusCode::kPermissionDenied, ::testing::_))
        << url;
  }
  for (const char* url :
       {"ftp://hooks.test/", "hooks.test", "http://hooks.test@evil/",
        "http://hooks.test:99999/", "http:///x", "http://hooks.test/#x",
        "http://hooks.test/\r\nX: y", "http://hooks.test:80:80/"}) {
    EXPECT_THAT(Submit(WithWebhook(url)),
                StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_))
        << url;
  }
  // No job was made on the way.
  Context context;
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(jobs_->ListJobs(&context, v1::ListJobsRequest(), &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 0);
}

// A receiver that answers no sooner than the test says.
class SlowReceiverTest : public WebhooksTest {
 protected:
  void SetUp() override {
    WebhooksTest::SetUp();
    options_.webhooks.post =
        [this](const http::PostRequest& request) -> absl::StatusOr<int> {
      absl::MutexLock lock(&mutex_);
      const bool slow = request.url.host == "hooks.test";
      slow_now_ += slow;
      most_slow_ = std::max(most_slow_, slow_now_);
      if (slow) mutex_.Await(absl::Condition(&let_go_));
      slow_now_ -= slow;
      sent_.push_back(request);
      return answer_;
    };
    Restart();
  }
  void TearDown() override {
    LetGo();
    WebhooksTest::TearDown();
  }
  void LetGo() {
    absl::MutexLock lock(&mutex_);
    let_go_ = true;
  }
  void EndAJobFor(const std::string& url) {
    ASSERT_THAT(Submit(WithWebhook(url)), IsOk());
    RunOptimize();
  }

  bool let_go_ ABSL_GUARDED_BY(mutex_) = false;
  int slow_now_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_slow_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(SlowReceiverTest, DelaysNobodyElse) {
  for (int i = 0; i < 6; ++i) EndAJobFor("http://hooks.test/");
  EndAJobFor("http://other.test:8080/");
  ASSERT_NO_FATAL_FAILURE(AwaitSent(1));
  EXPECT_EQ(Last().url.host, "other.test");
  LetGo();
  ASSERT_NO_FATAL_FAILURE(AwaitSent(7));
  // It was not given more at once for being slow.
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(most_slow_, 1);
}

TEST_F(WebhooksTest, TheServerStopsWhileAReceiverHoldsTheConnection) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::acceptor silent(
      context, {boost::asio::ip::make_address("127.0.0.1"), 0});
  const std::string authority =
      absl::StrCat("127.0.0.1:", silent.local_endpoint().port());
  options_.webhooks.allowed = {authority};
  options_.webhooks.post = http::Post;
  Restart();
  OPTFARM_ASSERT_OK(
      Submit(WithWebhook(absl::StrCat("http://", authority, "/"))).status());
  RunOptimize();
  boost::asio::ip::tcp::socket socket = silent.accept();
  const absl::Time begin = absl::Now();
  server_.reset();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  // A later server tells it.
  Restart();
  EXPECT_TRUE(silent.accept().is_open());
}

TEST_F(WebhooksTest, WantASecret) {
  ServerOptions second = options_;
  second.data_dir = JoinPath(folder_, "second");
  second.webhooks.secret = "";
  EXPECT_EQ(Server::Start(second).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace optfarm::server
