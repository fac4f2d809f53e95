// The HTTP door of a real server: the same jobs, blobs and refusals as through
// gRPC.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "tests/server/rest_client.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::string_view kModel = "\x0a\x02\x0a";

class RestTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.http_address = "127.0.0.1:0";
    ServerFixture::SetUp();
  }
  RestClient Client() { return RestClient(server_->http_address()); }

  static std::string BlobPath(absl::string_view bytes) {
    return absl::StrCat("/v1/blobs/", Sha256Hex(bytes));
  }
  std::string SubmitBody() {
    return absl::StrCat(
        R"({"spec":{"model":{"name":"model.pb","digest":{"sha256":")",
        Sha256Hex(kModel), R"(","size_bytes":"3"}},"recipe":{"name":"int8",)",
        R"("transform_string":"fold_constants"}}})");
  }
};

TEST_F(RestTest, AJobGoesThroughFromUploadToEnd) {
  RestClient client = Client();
  RestAnswer missing = client.Post("/v1/jobs", SubmitBody());
  EXPECT_EQ(missing.status, 400);
  EXPECT_EQ(missing.json()["code"], "FAILED_PRECONDITION");
  EXPECT_EQ(missing.json()["details"][0]["missing_blobs"][0]["sha256"],
            Sha256Hex(kModel));

  EXPECT_EQ(
      client.Call("PUT", BlobPath(kModel), {}, std::string(kModel)).status,
      201);
  EXPECT_EQ(
      client.Call("PUT", BlobPath(kModel), {}, std::string(kModel)).status,
      200);
  const RestAnswer accepted =
      client.Post("/v1/jobs", SubmitBody(), {{"Idempotency-Key", "once"}});
  ASSERT_EQ(accepted.status, 200) << accepted.body;
  const std::string job_id = accepted.json()["job"]["job_id"];
  const RestAnswer again =
      client.Post("/v1/jobs", SubmitBody(), {{"Idempotency-Key", "once"}});
  EXPECT_EQ(again.json()["job"]["job_id"], job_id);
  EXPECT_EQ(again.json()["existed"], true);
  // Nothing is decided before the end.
  EXPECT_TRUE(again.json()["job"]["verdicts"].empty());

  RunOptimize();
  const std::string path = absl::StrCat("/v1/jobs/", job_id);
  EXPECT_EQ(client.Get(path).json()["state"], "SUCCEEDED");
  EXPECT_EQ(client.Get("/v1/jobs?filter=state%3DSUCCEEDED")
                .json()["jobs"][0]["job_id"],
            job_id);
  // As through gRPC.
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, GetJob(job_id));
  EXPECT_EQ(job.state(), v1::SUCCEEDED);
  const nlohmann::json verdicts = client.Get(path).json()["verdicts"];
  ASSERT_EQ(verdicts.size(), 2u);
  ASSERT_EQ(job.verdicts_size(), 2);
  EXPECT_EQ(verdicts[0]["answer"], "BASELINE");
  EXPECT_EQ(verdicts[1]["answer"], "UNCLEAR");
  EXPECT_EQ(verdicts[1]["text"], "unclear: speed not measured");
  EXPECT_EQ(verdicts[1]["text"], job.verdicts(1).text());

  const RestAnswer events = client.Get(absl::StrCat(path, "/events"));
  EXPECT_EQ(events.status, 200);
  EXPECT_THAT(events.body,
              AllOf(HasSubstr("id: 1\n"), HasSubstr("event: job_state\n"),
                    HasSubstr("event: end\n")));
  const RestAnswer nothing_new =
      client.Get(absl::StrCat(path, "/events"),
                 {{"Last-Event-ID", absl::StrCat(job.last_event_sequence())}});
  EXPECT_EQ(nothing_new.status, 204);

  EXPECT_EQ(client.Get("/v1/jobs/none").status, 404);
  EXPECT_EQ(client.Post(absl::StrCat(path, ":cancel"), "{}").status, 200);
}

TEST_F(RestTest, EventsComeWhileTheJobRuns) {
  RestClient client = Client();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(GoodSubmit()));
  RestAnswer events;
  std::thread watcher([&] {
    events = client.Get(absl::StrCat("/v1/jobs/", job.job_id(), "/events"));
  });
  RunOptimize();
  watcher.join();
  EXPECT_THAT(events.body,
              AllOf(HasSubstr("SUCCEEDED"), HasSubstr("event: end\n")));
}

TEST_F(RestTest, UploadsGoOnWhereTheyBroke) {
  RestClient client = Client();
  std::string bytes(3 << 20, 'a');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = "abcdefg"[i * i % 7];
  const std::string path = BlobPath(bytes);
  const size_t half = bytes.size() / 2;
  const auto range = [&](size_t first, size_t end) {
    return RestClient::Headers{
        {"Content-Range",
         absl::StrCat("bytes ", first, "-", end - 1, "/", bytes.size())}};
  };
  const RestAnswer part =
      client.Call("PUT", path, range(0, half), bytes.substr(0, half));
  EXPECT_EQ(part.status, 202);
  EXPECT_EQ(part.headers.at("upload-offset"), absl::StrCat(half));
  const RestAnswer state = client.Get(
      absl::StrCat(path, "/upload?digest.size_bytes=", bytes.size()));
  EXPECT_EQ(state.json()["committed_bytes"], absl::StrCat(half));
  EXPECT_EQ(state.json()["complete"], false);
  // A gap is refused.
  EXPECT_EQ(client
                .Call("PATCH", path, range(half + 5, bytes.size()),
                      bytes.substr(half + 5))
                .status,
            400);
  EXPECT_EQ(
      client.Call("PATCH", path, range(half, bytes.size()), bytes.substr(half))
          .status,
      201);
  EXPECT_EQ(client.Get(path).body, bytes);
  const RestAnswer tail = client.Get(path, {{"Range", "bytes=-100"}});
  EXPECT_EQ(tail.status, 206);
  EXPECT_EQ(tail.body, bytes.substr(bytes.size() - 100));
  EXPECT_EQ(
      client.Get(path, {{"If-None-Match", tail.headers.at("etag")}}).status,
      304);
  // Bytes that are others than promised.
  const RestAnswer lie =
      client.Call("PUT", BlobPath("other"), {}, std::string("wrong"));
  EXPECT_EQ(lie.status, 400);
  EXPECT_EQ(lie.json()["code"], "DATA_LOSS");
}

TEST_F(RestTest, EmptyFilesGoBothWays) {
  RestClient client = Client();
  EXPECT_EQ(client.Call("PUT", BlobPath(""), {}, "").status, 201);
  const RestAnswer empty = client.Get(BlobPath(""));
  EXPECT_EQ(empty.status, 200);
  EXPECT_EQ(empty.body, "");
  EXPECT_EQ(client.Get(BlobPath("never sent")).status, 404);
}

TEST_F(RestTest, SaysThatItLivesAndIsReady) {
  RestClient client = Client();
  EXPECT_EQ(client.Get("/livez").status, 200);
  EXPECT_EQ(client.Get("/readyz").status, 200);
  EXPECT_EQ(client.Get("/docs").status, 200);
}

TEST_F(RestTest, IdleConnectionsGiveWayToNewOnes) {
  options_.http_limits.max_connections = 4;
  Restart();
  boost::asio::io_context context;
  std::vector<boost::asio::ip::tcp::socket> idle;
  const std::string address = server_->http_address();
  const auto port = static_cast<unsigned short>(
      std::stoi(address.substr(address.rfind(':') + 1)));
  for (int i = 0; i < 40; ++i) {
    idle.emplace_back(context);
    idle.back().connect({boost::asio::ip::make_address("127.0.0.1"), port});
  }
  EXPECT_EQ(Client().Get("/livez").status, 200);
  EXPECT_EQ(Client().Get("/v1/jobs").status, 200);
  // The one that came first went first.
  std::string answer;
  boost::system::error_code end;
  boost::asio::read(idle.front(), boost::asio::dynamic_buffer(answer), end);
  EXPECT_TRUE(end);
}

// The HTTP door's own connection to the services must not be taken for idle.
TEST_F(RestTest, AnswersAfterALongTimeWithoutCalls) {
  options_.idle_connection = absl::Milliseconds(100);
  Restart();
  // One that is younger than the door's, and ends because nothing uses it.
  EXPECT_TRUE(channel_->WaitForConnected(
      absl::ToChronoTime(absl::Now() + absl::Seconds(60))));
  EXPECT_TRUE(channel_->WaitForStateChange(
      GRPC_CHANNEL_READY, absl::ToChronoTime(absl::Now() + absl::Seconds(60))));
  const RestAnswer answer = Client().Get("/v1/jobs");
  EXPECT_EQ(answer.status, 200) << answer.body;
  const absl::Time start = absl::Now();
  server_->Shutdown();
  EXPECT_LT(absl::Now() - start, options_.grace);
}

TEST_F(RestTest, HealthIsToldWhenAllConnectionsAreBusy) {
  options_.http_limits.max_connections = 2;
  Restart();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(GoodSubmit()));
  const std::string target = absl::StrCat("/v1/jobs/", job.job_id(), "/events");
  const std::string address = server_->http_address();
  const auto port = static_cast<unsigned short>(
      std::stoi(address.substr(address.rfind(':') + 1)));
  boost::asio::io_context context;
  std::vector<boost::asio::ip::tcp::socket> watches;
  for (int i = 0; i < 2; ++i) {
    watches.emplace_back(context);
    watches.back().connect({boost::asio::ip::make_address("127.0.0.1"), port});
    boost::asio::write(watches.back(), boost::asio::buffer(absl::StrCat(
                                           "GET ", target,
                                           " HTTP/1.1\r\nHost: localhost\r\n"
                                           "\r\n")));
    // It is busy once something of the answer is here.
    char first = 0;
    boost::asio::read(watches.back(), boost::asio::buffer(&first, 1));
  }
  const RestAnswer jobs = Client().Get("/v1/jobs");
  EXPECT_EQ(jobs.status, 503);
  EXPECT_EQ(jobs.headers.at("retry-after"), "2");
  EXPECT_EQ(Client().Get("/livez").status, 200);
  EXPECT_EQ(Client().Get("/readyz").status, 200);
  EXPECT_EQ(Client().Get("/metrics").status, 200);
}

TEST_F(RestTest, AClientThatIsTooSlowLosesItsConnection) {
  options_.http_limits.head_time = absl::Milliseconds(50);
  Restart();
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket slow(context);
  const std::string address = server_->http_address();
  slow.connect({boost::asio::ip::make_address("127.0.0.1"),
                static_cast<unsigned short>(
                    std::stoi(address.substr(address.rfind(':') + 1)))});
  boost::asio::write(slow, boost::asio::buffer("GET /livez HT", 13));
  std::string answer;
  boost::system::error_code end;
  boost::asio::read(slow, boost::asio::dynamic_buffer(answer), end);
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 408"));
}

TEST_F(RestTest, ShutdownEndsStreamsAndConnections) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(GoodSubmit()));
  RestClient client = Client();
  RestAnswer events;
  std::thread watcher([&] {
    events = client.Get(absl::StrCat("/v1/jobs/", job.job_id(), "/events"));
  });
  // Connections that never ask anything do not hold it up either.
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket idle(context);
  const std::string address = server_->http_address();
  idle.connect({boost::asio::ip::make_address("127.0.0.1"),
                static_cast<unsigned short>(
                    std::stoi(address.substr(address.rfind(':') + 1)))});
  server_->Shutdown();
  watcher.join();
  EXPECT_THAT(events.body, Not(HasSubstr("event: end\n")));
}

// Asks the server that is just starting when that first asks for the time.
class AskingClock final : public Clock {
 public:
  explicit AskingClock(std::string address) : client_(std::move(address)) {}

  absl::Time Now() override {
    if (!asked_.exchange(true)) {
      for (const char* path : {"/livez", "/readyz", "/v1/jobs"}) {
        answers_.push_back(client_.Get(path));
      }
    }
    return RealClock()->Now();
  }
  void Sleep(absl::Duration duration) override { RealClock()->Sleep(duration); }
  bool AwaitWithTimeout(absl::Mutex* mutex, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return RealClock()->AwaitWithTimeout(mutex, condition, timeout);
  }
  // Of a server that has started.
  const std::vector<RestAnswer>& answers() const { return answers_; }

 private:
  RestClient client_;
  std::atomic<bool> asked_ = false;
  std::vector<RestAnswer> answers_;
};

TEST_F(RestTest, LivesButIsNotReadyWhileItOpensItsStores) {
  options_.http_address = server_->http_address();
  server_.reset();
  AskingClock clock(options_.http_address);
  options_.clock = &clock;
  OPTFARM_ASSERT_OK_AND_ASSIGN(server_, Server::Start(options_));
  ASSERT_EQ(clock.answers().size(), 3u);
  EXPECT_EQ(clock.answers()[0].status, 200);
  EXPECT_EQ(clock.answers()[1].status, 503);
  EXPECT_THAT(clock.answers()[1].body, HasSubstr("the server is starting"));
  EXPECT_EQ(clock.answers()[2].status, 503);
  EXPECT_EQ(Client().Get("/readyz").status, 200);
  server_.reset();
}

TEST_F(RestTest, HttpAddressThatIsTakenIsUnavailable) {
  ServerOptions second = options_;
  second.data_dir = JoinPath(folder_, "second");
  second.http_address = server_->http_address();
  EXPECT_EQ(Server::Start(second).status().code(),
            absl::StatusCode::kUnavailable);
  second.http_address = "0.0.0.0:0";
  EXPECT_EQ(Server::Start(second).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace optfarm::server
