// Requests that come again, come too slowly or too large, or are no requests,
// at the gRPC door and the HTTP door of a whole server. What one connection of
// the HTTP door makes of bytes is tested in tests/http.

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <set>
#include <thread>

#include "rpc/channel.h"
#include "tests/server/rest_client.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kOperator[] = "operator-secret";

class HostileRequestsTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.http_address = "127.0.0.1:0";
    options_.token = kOperator;
    options_.handshake_time = absl::Milliseconds(50);
    // A longer step of the clock would be taken for a pause and forgiven.
    options_.scheduling.lease = absl::Seconds(10);
    ServerFixture::SetUp();
  }

  RestClient Client(const std::string& token = kOperator) {
    RestClient client(server_->http_address());
    client.SetToken(token);
    return client;
  }
  RestAnswer Token(const std::string& scope) {
    return Client().Post(
        "/v1/tokens", absl::StrCat(R"({"name":"of-)", scope, R"(","scopes":[")",
                                   scope, R"("]})"));
  }
  // A submit of a model that is there, named `name`.
  std::string SubmitBody(const std::string& name) {
    const std::string model("\x0a\x02\x0a\x00", 4);
    const std::string sha = Sha256Hex(model);
    const int put =
        Client().Call("PUT", absl::StrCat("/v1/blobs/", sha), {}, model).status;
    EXPECT_TRUE(put == 200 || put == 201) << put;
    return absl::StrCat(R"({"spec":{"name":")", name,
                        R"(","model":{"name":"m.pb","digest":{"sha256":")", sha,
                        R"(","size_bytes":"4"}},"recipe":{"name":"r",)",
                        R"("transform_string":"fold_constants"}}})");
  }
  RestAnswer Submit(const std::string& key, const std::string& name = "job") {
    return Client().Post("/v1/jobs", SubmitBody(name),
                         {{"Idempotency-Key", key}});
  }
  size_t CountJobs() {
    return Client()
        .Get("/v1/jobs")
        .json()
        .value("jobs", nlohmann::json())
        .size();
  }
  absl::StatusOr<v1::SynchronizeResponse> SynchronizeAs(
      const std::string& token, const v1::SynchronizeRequest& request) {
    Context context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::SynchronizeResponse response;
    const absl::Status status =
        rpc::FromGrpc(work_->Synchronize(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
  // A worker's call that reports the one task that waits.
  v1::SynchronizeRequest Report(const std::string& token) {
    v1::SynchronizeRequest report = WorkerCall();
    const auto leased = SynchronizeAs(token, report);
    EXPECT_TRUE(leased.ok()) << leased.status();
    report.set_free_slots(0);
    v1::HeldTask& held = *report.add_held();
    held.set_task_id(leased->new_tasks(0).task_id());
    held.set_attempt(leased->new_tasks(0).attempt());
    held.mutable_completion()->mutable_failure()->set_kind(v1::Failure::USER);
    held.mutable_completion()->mutable_failure()->set_code("BAD_MODEL");
    return report;
  }
  std::string EventsOf(const std::string& job) {
    return Client()
        .Get(absl::StrCat("/v1/jobs/", job, "/events?no_follow=true"))
        .body;
  }
  boost::asio::ip::tcp::socket Connect(const std::string& address) {
    boost::asio::ip::tcp::socket socket(sockets_);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"),
                    static_cast<unsigned short>(
                        std::stoi(address.substr(address.rfind(':') + 1)))});
    return socket;
  }

  boost::asio::io_context sockets_;
};

TEST_F(HostileRequestsTest, ASubmitThatComesAgainIsTheSameJob) {
  const RestAnswer first = Submit("key-1");
  ASSERT_EQ(first.status, 200) << first.body;
  const std::string job = first.json()["job"]["job_id"];
  EXPECT_EQ(Submit("key-1").json()["job"]["job_id"], job);
  const RestAnswer other = Submit("key-1", "another");
  EXPECT_EQ(other.status, 409);
  EXPECT_THAT(other.body, HasSubstr("key-1"));
  Restart();
  EXPECT_EQ(Submit("key-1").json()["job"]["job_id"], job);
  EXPECT_EQ(Submit("key-1", "another").status, 409);
  EXPECT_EQ(CountJobs(), 1u);
}

TEST_F(HostileRequestsTest, SubmitsThatComeAtTheSameTimeAreOneJob) {
  std::vector<std::string> jobs(6);
  const std::string body = SubmitBody("job");
  std::vector<std::thread> threads;
  for (std::string& job : jobs) {
    threads.emplace_back([&] {
      RestClient client = Client();
      job = client.Post("/v1/jobs", body, {{"Idempotency-Key", "key-1"}})
                .json()["job"]["job_id"];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(std::set<std::string>(jobs.begin(), jobs.end()), SizeIs(1));
  EXPECT_EQ(CountJobs(), 1u);
}

TEST_F(HostileRequestsTest, AReportThatComesAgainChangesNothing) {
  const std::string job = Submit("key-1").json()["job"]["job_id"];
  const nlohmann::json token = Token("WORK").json();
  const std::string secret = token["secret"];
  v1::SynchronizeRequest report = Report(secret);
  const auto verdict = [&](const std::string& as) {
    const auto answer = SynchronizeAs(as, report);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->verdicts(0).verdict()
                       : v1::TaskVerdict::VERDICT_UNSPECIFIED;
  };
  EXPECT_EQ(verdict(secret), v1::TaskVerdict::COMPLETION_ACCEPTED);
  const std::string events = EventsOf(job);
  EXPECT_THAT(events, HasSubstr("BAD_MODEL"));
  // Its sender may have missed the answer.
  EXPECT_EQ(verdict(secret), v1::TaskVerdict::COMPLETION_ACCEPTED);
  report.mutable_held(0)->set_attempt(2);
  EXPECT_EQ(verdict(secret), v1::TaskVerdict::STALE);
  report.mutable_held(0)->set_attempt(1);
  // Who took the request down has it, and the token in it, until that ends.
  EXPECT_EQ(Client()
                .Call("DELETE",
                      absl::StrCat("/v1/tokens/",
                                   std::string(token["token"]["token_id"])),
                      {}, "")
                .status,
            200);
  EXPECT_EQ(SynchronizeAs(secret, report).status().code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(EventsOf(job), events);
}

TEST_F(HostileRequestsTest, AReportAfterItsLeaseIsStale) {
  const std::string job = Submit("key-1").json()["job"]["job_id"];
  const std::string secret = Token("WORK").json()["secret"];
  const v1::SynchronizeRequest report = Report(secret);
  clock_.Advance(options_.scheduling.lease + absl::Seconds(1));
  server_->Wake();
  // The ticker works in its own time.
  while (EventsOf(job).find("not heard of") == std::string::npos) {
    std::this_thread::yield();
  }
  const auto answer = SynchronizeAs(secret, report);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->verdicts(0).verdict(), v1::TaskVerdict::STALE);
  EXPECT_THAT(EventsOf(job), ::testing::Not(HasSubstr("BAD_MODEL")));
}

TEST_F(HostileRequestsTest, CancelsAndUploadsThatComeAgainAreHarmless) {
  const std::string job = Submit("key-1").json()["job"]["job_id"];
  const std::string path = absl::StrCat("/v1/jobs/", job, ":cancel");
  EXPECT_EQ(Client().Post(path, "{}").status, 200);
  const std::string events = EventsOf(job);
  EXPECT_EQ(Client().Post(path, "{}").status, 200);
  EXPECT_EQ(EventsOf(job), events);
  // SubmitBody uploads the same file each time.
  SubmitBody("again");
}

TEST_F(HostileRequestsTest, ConnectionsThatNeverBecomeHttp2AreClosed) {
  boost::system::error_code end;
  for (const std::string begin :
       {"", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET / HTTP/1.1\r\n", "\x16\x03\x01\x02"}) {
    boost::asio::ip::tcp::socket slow = Connect(server_->address());
    boost::asio::write(slow, boost::asio::buffer(begin), end);
    std::string answer;
    boost::asio::read(slow, boost::asio::dynamic_buffer(answer), end);
    EXPECT_TRUE(end) << begin;
  }
  EXPECT_EQ(Client().Get("/v1/jobs").status, 200);
}

TEST_F(HostileRequestsTest, WhatIsNoMessageOrTooLargeIsRefusedByGrpc) {
  // A client without limits of its own.
  grpc::GenericStub stub(grpc::CreateChannel(
      server_->address(), grpc::InsecureChannelCredentials()));
  const auto call = [&](const std::string& bytes) {
    Context context;
    context.AddMetadata("authorization", absl::StrCat("Bearer ", kOperator));
    grpc::CompletionQueue queue;
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::Status status;
    const auto reader = stub.PrepareUnaryCall(
        &context, "/optfarm.v1.JobService/GetJob", request, &queue);
    reader->StartCall();
    reader->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status.error_code();
  };
  EXPECT_EQ(call("\x0a\xff\xff\xff"), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(call(std::string(rpc::kMaxMessageBytes + 1, 'x')),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(call("\x0a\x01j"), grpc::StatusCode::NOT_FOUND);
}

TEST_F(HostileRequestsTest, FloodsOfUnauthenticatedCallsLeaveTheServerAtWork) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Client("wrong").Get("/v1/jobs").status, 401);
    EXPECT_EQ(SynchronizeAs("wrong", WorkerCall()).status().code(),
              absl::StatusCode::kUnauthenticated);
  }
  EXPECT_EQ(Submit("key-1").status, 200);
  // None of them became a worker.
  EXPECT_THAT(Client().Get("/v1/whoami").body,
              ::testing::Not(HasSubstr("worker-1")));
}

TEST_F(HostileRequestsTest, StrangersConnectionsGiveWayToThoseOfTokens) {
  options_.connections.max_per_peer = 4;
  options_.handshake_time = absl::Minutes(1);
  Restart();
  grpc::ClientContext context;
  context.AddMetadata("authorization", absl::StrCat("Bearer ", kOperator));
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(jobs_->ListJobs(&context, v1::ListJobsRequest(), &jobs).ok());
  std::vector<boost::asio::ip::tcp::socket> strangers;
  for (int i = 0; i < 8; ++i) strangers.push_back(Connect(server_->address()));
  // The first five are broken off, whatever they wait for.
  for (int i = 0; i < 5; ++i) {
    boost::system::error_code end;
    std::string answer;
    boost::asio::read(strangers[i], boost::asio::dynamic_buffer(answer), end);
    EXPECT_TRUE(end) << i;
  }
  // Over the connection that was there before.
  grpc::ClientContext again;
  again.AddMetadata("authorization", absl::StrCat("Bearer ", kOperator));
  EXPECT_TRUE(jobs_->ListJobs(&again, v1::ListJobsRequest(), &jobs).ok());
  EXPECT_EQ(channel_->GetState(false), GRPC_CHANNEL_READY);
  // And whoever comes now gets a place, and leaves it at the end.
  for (int i = 0; i < 20; ++i) {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::JobService::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), own));
    Context one;
    one.AddMetadata("authorization", absl::StrCat("Bearer ", kOperator));
    // Until the server has heard of the end of those before.
    one.set_wait_for_ready(true);
    EXPECT_TRUE(stub->ListJobs(&one, v1::ListJobsRequest(), &jobs).ok()) << i;
  }
}

// Each would take one of gRPC's threads for as long as it likes.
TEST_F(HostileRequestsTest, OpenStreamsWithoutATokenTakeNoThread) {
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  struct Open {
    Context context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::Status status;
  };
  std::vector<Open> calls(250);
  for (Open& call : calls) {
    call.stream = stub.PrepareCall(
        &call.context,
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        &queue);
    call.stream->StartCall(&call);
  }
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < calls.size(); ++i) queue.Next(&tag, &ok);
  for (int i = 0; i < 20; ++i) {
    Context context;
    context.AddMetadata("authorization", absl::StrCat("Bearer ", kOperator));
    v1::ListJobsResponse jobs;
    const grpc::Status status =
        jobs_->ListJobs(&context, v1::ListJobsRequest(), &jobs);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  for (Open& call : calls) {
    call.context.TryCancel();
    call.stream->Finish(&call.status, &call);
  }
  for (size_t i = 0; i < calls.size(); ++i) queue.Next(&tag, &ok);
}

}  // namespace
}  // namespace optfarm::server
