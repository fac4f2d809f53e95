// What a call costs before and while its request is read: nothing for
// strangers, bounded room for those who may call.

#include <gmock/gmock.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <thread>
#include <vector>

#include "optfarm/v1/store.pb.h"
#include "optfarm/v1/tokens.pb.h"
#include "server/access/call_room.h"
#include "server/access/farm_services.h"
#include "tests/server/rest_client.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kOperator[] = "operator-secret";

// A field 1 that holds an empty message, so many times.
std::string EmptyMessages(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes.append("\x0a\x00", 2);
  return bytes;
}

class AdmissionTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.http_address = "127.0.0.1:0";
    options_.token = kOperator;
    // Who waits for a body that never comes is told of it soon.
    options_.http_limits.body_time = absl::Seconds(5);
    ServerFixture::SetUp();
  }

  // One call of which `message` is sent, or nothing but its head.
  class RawCall {
   public:
    RawCall(const std::shared_ptr<grpc::Channel>& channel,
            const std::string& token, const std::string& method)
        : stub_(channel) {
      context_.AddMetadata("authorization", "Bearer " + token);
      const size_t dot = method.rfind('.');
      call_ = stub_.PrepareCall(
          &context_, "/" + method.substr(0, dot) + "/" + method.substr(dot + 1),
          &queue_);
      call_->StartCall(this);
      Next();
    }
    void Send(const std::string& message) {
      const grpc::Slice slice(message);
      call_->Write(grpc::ByteBuffer(&slice, 1), this);
      Next();
    }
    absl::Status Finish() {
      grpc::Status status;
      call_->Finish(&status, this);
      Next();
      return rpc::FromGrpc(status);
    }

   private:
    void Next() {
      void* tag = nullptr;
      bool ok = false;
      queue_.Next(&tag, &ok);
    }
    grpc::GenericStub stub_;
    Context context_;
    grpc::CompletionQueue queue_;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  };

  // What the HTTP server answers to a head whose body never comes.
  std::string AnswerToHead(const std::string& line, const std::string& token,
                           size_t announced) {
    boost::asio::io_context context;
    boost::asio::ip::tcp::socket socket(context);
    const std::string address = server_->http_address();
    socket.connect({boost::asio::ip::make_address("127.0.0.1"),
                    static_cast<unsigned short>(
                        std::stoi(address.substr(address.rfind(':') + 1)))});
    boost::asio::write(socket,
                       boost::asio::buffer(absl::StrCat(
                           line,
                           " HTTP/1.1\r\nHost: localhost\r\nAuthorization: "
                           "Bearer ",
                           token, "\r\nContent-Type: application/json\r\n",
                           "Content-Length: ", announced, "\r\n\r\n")));
    std::string answer;
    boost::system::error_code error;
    boost::asio::read(socket, boost::asio::dynamic_buffer(answer),
                      boost::asio::transfer_at_least(12), error);
    return answer;
  }
};

TEST_F(AdmissionTest, StrangersAreRefusedByTheHeadOfAnyCall) {
  for (const auto* method : FarmMethods()) {
    EXPECT_EQ(RawCall(channel_, "guess", method->full_name()).Finish().code(),
              absl::StatusCode::kUnauthenticated)
        << method->full_name();
  }
}

TEST_F(AdmissionTest, WhoLacksTheScopeIsRefusedByTheHead) {
  RestClient client(server_->http_address());
  client.SetToken(kOperator);
  const std::string reader =
      client.Post("/v1/tokens", R"({"name":"r","scopes":["READ"]})")
          .json()["secret"];
  for (const char* method :
       {"JobService.SubmitJob", "StoreService.QuerySql",
        "TokenService.CreateToken", "WorkService.Synchronize"}) {
    EXPECT_EQ(RawCall(channel_, reader, absl::StrCat("optfarm.v1.", method))
                  .Finish()
                  .code(),
              absl::StatusCode::kPermissionDenied)
        << method;
  }
}

TEST_F(AdmissionTest, BodiesOfStrangersAreNotWaitedFor) {
  for (const char* line :
       {"POST /v1/jobs", "POST /v1/tokens", "POST /v1/store:sql"}) {
    EXPECT_THAT(AnswerToHead(line, "guess", 16 << 20),
                StartsWith("HTTP/1.1 401"))
        << line;
  }
  // A body of nobody's business is not waited for either.
  EXPECT_THAT(AnswerToHead("POST /v1/jobs", kOperator, 17 << 20),
              StartsWith("HTTP/1.1 413"));
}

TEST_F(AdmissionTest, MessagesAreBoundedByWhatTheyBecome) {
  RawCall large(channel_, kOperator, "optfarm.v1.ModelService.FindMissing");
  large.Send(EmptyMessages(size_t{16} << 20));
  const absl::Status by_bytes = large.Finish();
  EXPECT_EQ(by_bytes.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(by_bytes.message()), HasSubstr("33554432 bytes"));
  RawCall many(channel_, kOperator, "optfarm.v1.ModelService.FindMissing");
  many.Send(EmptyMessages(size_t{2} << 20));
  const absl::Status by_memory = many.Finish();
  EXPECT_EQ(by_memory.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(by_memory.message()), HasSubstr("of memory"));
}

TEST_F(AdmissionTest, SoAreJsonBodies) {
  std::string body = R"({"digests":[{})";
  for (int i = 0; i < 1'000'000; ++i) body.append(",{}");
  body.append("]}");
  RestClient client(server_->http_address());
  client.SetToken(kOperator);
  const RestAnswer answer = client.Post("/v1/blobs:findMissing", body);
  EXPECT_EQ(answer.status, 429);
  EXPECT_THAT(answer.body, HasSubstr("of memory"));
}

TEST_F(AdmissionTest, ARequestThatNeverComesIsNotWaitedForForEver) {
  RawCall by_thread(channel_, kOperator, "optfarm.v1.JobService.GetJob");
  RawCall by_reactor(channel_, kOperator, "optfarm.v1.WorkService.Synchronize");
  // The heads may come after the first look.
  std::thread time([this] {
    for (int i = 0; i < 100; ++i) {
      clock_.Advance(absl::Seconds(10));
      server_->Wake();
      absl::SleepFor(absl::Milliseconds(10));
    }
  });
  EXPECT_EQ(by_thread.Finish().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(by_reactor.Finish().code(), absl::StatusCode::kCancelled);
  time.join();
}

class CallRoomTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<CallRoom::Stay>> Enter(
      const std::string& project) {
    return room_.Enter(
        project, CallRoom::Served::kByThread, [this] { ++cancelled_; },
        absl::UnixEpoch());
  }
  CallRoom room_{{.max_calls = 2, .max_bytes = 100, .max_project_bytes = 60}};
  int cancelled_ = 0;
};

TEST_F(CallRoomTest, EachProjectHasItsOwnCalls) {
  auto first = Enter("a");
  auto second = Enter("a");
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  const auto third = Enter("a");
  EXPECT_TRUE(absl::IsResourceExhausted(third.status()));
  EXPECT_THAT(std::string(third.status().message()), HasSubstr("try again in"));
  EXPECT_THAT(Enter("b"), IsOk());
  first->reset();
  EXPECT_THAT(Enter("a"), IsOk());
}

TEST_F(CallRoomTest, MemoryIsSharedOutAndGivenBack) {
  auto a = Enter("a");
  ASSERT_THAT(a, IsOk());
  EXPECT_THAT((*a)->Take(50), IsOk());
  EXPECT_TRUE(absl::IsResourceExhausted((*a)->Take(11)));
  auto b = room_.Reserve("b", 50);
  EXPECT_THAT(b, IsOk());
  EXPECT_TRUE(absl::IsResourceExhausted(room_.Reserve("c", 1).status()));
  a->reset();
  EXPECT_THAT(room_.Reserve("c", 50), IsOk());
}

TEST_F(CallRoomTest, OnlyRequestsThatDoNotComeAreCancelled) {
  auto slow = Enter("a");
  auto quick = Enter("a");
  ASSERT_THAT(slow, IsOk());
  ASSERT_THAT(quick, IsOk());
  (*quick)->Arrived();
  room_.CancelSlow(absl::UnixEpoch() + absl::Seconds(59));
  EXPECT_EQ(cancelled_, 0);
  room_.CancelSlow(absl::UnixEpoch() + absl::Seconds(60));
  EXPECT_EQ(cancelled_, 1);
  EXPECT_TRUE((*slow)->TooSlow());
  EXPECT_FALSE((*quick)->TooSlow());
}

}  // namespace
}  // namespace optfarm::server
