// One connection from the client's bytes to the server's: what a well-behaved
// client gets, and what a malformed, oversized or slow one gets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "http/pages.h"
#include "http/service_map.h"
#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/models.pb.h"
#include "optfarm/v1/results.pb.h"
#include "tests/http/memory_stream.h"
#include "tests/support/status_matchers.h"

namespace optfarm::http {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kSha[] =
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const google::protobuf::ServiceDescriptor* services[] = {
        v1::Job::descriptor()->file()->service(0),
        v1::UploadRequest::descriptor()->file()->service(0),
        v1::Device::descriptor()->file()->service(0),
        v1::Result::descriptor()->file()->service(0)};
    OPTFARM_ASSERT_OK_AND_ASSIGN(services_.routes, RouteTable::Make(services));
    auto backend = std::make_unique<FakeBackend>();
    backend_ = backend.get();
    services_.backend = std::move(backend);
    services_.limits.max_head_bytes = 2000;
    services_.limits.max_json_bytes = 1000;
    AddDescriptionPages("1.2.3", &services_);
  }

  // What the server says to `in`, sent in pieces.
  std::string Talk(const std::string& in, size_t piece = 1 << 20,
                   bool quiet = false) {
    MemoryStream stream(in, piece, quiet);
    ServeConnection(stream, services_, {.stop = [] { return false; }});
    return stream.out();
  }
  std::string Get(absl::string_view target, absl::string_view headers = "") {
    return Talk(absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: localhost\r\n",
                             headers, "\r\n"));
  }
  std::string Send(absl::string_view verb, absl::string_view target,
                   absl::string_view headers, absl::string_view body) {
    return Talk(absl::StrCat(verb, " ", target,
                             " HTTP/1.1\r\nHost: localhost\r\nContent-Length: ",
                             body.size(), "\r\n", headers, "\r\n", body));
  }
  static std::string Body(const std::string& answer) {
    const size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "" : answer.substr(end + 4);
  }
  template <typename Message>
  Message Asked() {
    Message message;
    EXPECT_THAT(backend_->calls, Not(IsEmpty()));
    if (!backend_->calls.empty()) {
      EXPECT_TRUE(
          message.ParseFromString(backend_->calls.back().messages.front()));
    }
    return message;
  }

  ServiceMap services_;
  FakeBackend* backend_ = nullptr;
};

TEST_F(ConnectionTest, AnswersAUnaryCallAsJson) {
  v1::Job job;
  job.set_job_id("j1");
  job.set_state(v1::RUNNING);
  backend_->answers = {job.SerializeAsString()};
  const std::string answer =
      Get("/v1/jobs/j1", "Authorization: Bearer secret\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/json\r\n"));
  const auto json = nlohmann::json::parse(Body(answer));
  EXPECT_EQ(json["job_id"], "j1");
  EXPECT_EQ(json["state"], "RUNNING");
  EXPECT_EQ(Asked<v1::GetJobRequest>().job_id(), "j1");
  EXPECT_EQ(backend_->calls[0].call.rpc, "/optfarm.v1.JobService/GetJob");
  EXPECT_THAT(backend_->calls[0].call.metadata,
              ::testing::ElementsAre(
                  ::testing::Pair("authorization", "Bearer secret")));
}

TEST_F(ConnectionTest, PathQueryAndBodyBecomeFields) {
  Get("/v1/jobs/a%2Fb%20c/events?after_sequence=7&noLogs=true");
  const auto watch = Asked<v1::WatchJobRequest>();
  EXPECT_EQ(watch.job_id(), "a/b c");
  EXPECT_EQ(watch.after_sequence(), 7);
  EXPECT_TRUE(watch.no_logs());
  EXPECT_FALSE(watch.logs_only());

  Get("/v1/jobs/x/logs");
  EXPECT_TRUE(Asked<v1::WatchJobRequest>().logs_only());

  Get("/v1/results?from_time=2026-01-31T12:00:00Z&device=pi4&threads=4");
  const auto query = Asked<v1::QueryResultsRequest>();
  EXPECT_EQ(query.device(), "pi4");
  EXPECT_EQ(query.threads(), 4);
  EXPECT_EQ(query.from_time().seconds(), 1769860800);

  Get("/v1/results:compare?a.job_id=1&b.job_id=2");
  EXPECT_EQ(Asked<v1::CompareResultsRequest>().b().job_id(), "2");

  Send("POST", "/v1/jobs/x:cancel", "Content-Type: application/json\r\n",
       R"({"reason":"enough","job_id":"other"})");
  EXPECT_EQ(Asked<v1::CancelJobRequest>().reason(), "enough");
  EXPECT_EQ(Asked<v1::CancelJobRequest>().job_id(), "x");
}

TEST_F(ConnectionTest, AnAnswerThatTheCallerHasIsNotSentAgain) {
  v1::Job job;
  job.set_job_id("j1");
  backend_->answers = {job.SerializeAsString()};
  const std::string first = Get("/v1/jobs/j1");
  const std::string name = "ETag: ";
  const size_t at = first.find(name);
  ASSERT_NE(at, std::string::npos) << first;
  const std::string tag =
      first.substr(at + name.size(), first.find("\r\n", at) - at - name.size());
  EXPECT_THAT(first, HasSubstr("Cache-Control: no-store"));
  const std::string known = absl::StrCat("If-None-Match: ", tag, "\r\n");
  const std::string again = Get("/v1/jobs/j1", known);
  EXPECT_THAT(again, StartsWith("HTTP/1.1 304"));
  EXPECT_EQ(Body(again), "");
  job.set_state(v1::RUNNING);
  backend_->answers = {job.SerializeAsString()};
  EXPECT_THAT(Get("/v1/jobs/j1", known),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("RUNNING"),
                    Not(HasSubstr(tag))));
  // A call that changes something is answered whole.
  EXPECT_THAT(
      Send("POST", "/v1/jobs/x:cancel",
           absl::StrCat("Content-Type: application/json\r\n", known), "{}"),
      AllOf(StartsWith("HTTP/1.1 200"), Not(HasSubstr("ETag"))));
}

TEST_F(ConnectionTest, ArrivesByteByByteAsInOnePiece) {
  const std::string request =
      "POST /v1/jobs/x:cancel HTTP/1.1\r\nHost: a\r\nContent-Type: "
      "application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\n{\"rea\r\n9\r\nson\":\"y\"}\r\n0\r\n\r\n"
      "GET /v1/devices HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const size_t piece : {1, 2, 3, 7, 1000}) {
    backend_->calls.clear();
    const std::string answer = Talk(request, piece);
    ASSERT_THAT(backend_->calls, SizeIs(2)) << piece << answer;
    v1::CancelJobRequest cancel;
    ASSERT_TRUE(cancel.ParseFromString(backend_->calls[0].messages[0]));
    EXPECT_EQ(cancel.reason(), "y");
  }
}

TEST_F(ConnectionTest, BodyThatIsOnlyTheLastChunkArrivesByteByByte) {
  const std::string head =
      "POST /v1/jobs/x:cancel HTTP/1.1\r\nHost: a\r\nContent-Type: "
      "application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const size_t piece : {1, 2, 3, 4, 1000}) {
    backend_->calls.clear();
    Talk(head + "0\r\n\r\n", piece);
    ASSERT_THAT(backend_->calls, SizeIs(1)) << piece;
    EXPECT_THAT(Talk(head + "0\r\n{\"rea\r\n\r\n", piece),
                StartsWith("HTTP/1.1 400"))
        << piece;
  }
}

TEST_F(ConnectionTest, PipelinedRequestsAreAnsweredInOrder) {
  std::string many;
  for (int i = 0; i < 50; ++i) {
    absl::StrAppend(&many, "GET /v1/jobs/", i, " HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  const std::string answers = Talk(many);
  ASSERT_THAT(backend_->calls, SizeIs(50));
  v1::GetJobRequest last;
  ASSERT_TRUE(last.ParseFromString(backend_->calls[49].messages[0]));
  EXPECT_EQ(last.job_id(), "49");
  const std::vector<std::string> parts =
      absl::StrSplit(answers, "HTTP/1.1 200 OK");
  EXPECT_THAT(parts, SizeIs(51));
}

TEST_F(ConnectionTest, ErrorsAreProblemsWithTheirStatus) {
  const std::pair<absl::StatusCode, absl::string_view> cases[] = {
      {absl::StatusCode::kInvalidArgument, "400 Bad Request"},
      {absl::StatusCode::kUnauthenticated, "401 Unauthorized"},
      {absl::StatusCode::kPermissionDenied, "403 Forbidden"},
      {absl::StatusCode::kNotFound, "404 Not Found"},
      {absl::StatusCode::kAlreadyExists, "409 Conflict"},
      {absl::StatusCode::kResourceExhausted, "429 Too Many Requests"},
      {absl::StatusCode::kInternal, "500 Internal Server Error"},
      {absl::StatusCode::kUnavailable, "503 Service Unavailable"},
  };
  for (const auto& [code, line] : cases) {
    backend_->status = absl::Status(code, "what \"was\" wrong");
    const std::string answer = Get("/v1/jobs/x");
    EXPECT_THAT(answer, StartsWith(absl::StrCat("HTTP/1.1 ", line)));
    EXPECT_THAT(answer, HasSubstr("application/problem+json"));
    const auto json = nlohmann::json::parse(Body(answer));
    EXPECT_EQ(json["detail"], "what \"was\" wrong");
    EXPECT_EQ(json["code"], absl::StatusCodeToString(code));
  }
}

TEST_F(ConnectionTest, WhatIsNotThereOrNotAllowedIsSaid) {
  EXPECT_THAT(Get("/v1/nothing"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Send("DELETE", "/v1/jobs/x", "", ""),
              AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD")));
  EXPECT_THAT(Send("POST", "/openapi.json", "", ""),
              StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(Get("/v1/jobs?page_siz=3"),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("page_size")));
  EXPECT_THAT(Get("/v1/jobs?page_size=three"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Get("/v1/jobs/%zz"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Get("/v1/jobs/%ff"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Send("POST", "/v1/jobs", "Content-Type: application/json\r\n",
                   "{\"spec\":{\"nam\":1}}"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Send("POST", "/v1/jobs", "Content-Type: application/json\r\n",
                   "{\"spec\":"),
              StartsWith("HTTP/1.1 400"));
  // As a form of any page in a browser could send it.
  EXPECT_THAT(Send("POST", "/v1/jobs", "Content-Type: text/plain\r\n", "{}"),
              StartsWith("HTTP/1.1 415"));
  EXPECT_THAT(backend_->calls, IsEmpty());
}

TEST_F(ConnectionTest, ActionsAreForTheirVerbAndTakeNoBody) {
  services_.actions["POST /session"] = [](const RequestHead&) {
    return TextReply(200, "done");
  };
  EXPECT_THAT(Send("POST", "/session", "", ""), HasSubstr("done"));
  EXPECT_THAT(Send("POST", "/session", "", "x"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Get("/session"), StartsWith("HTTP/1.1 404"));
}

TEST_F(ConnectionTest, AdmissionComesBeforeTheBodyAndMayAuthorize) {
  services_.admit = [](RequestHead& head) {
    if (head.verb == "POST") return absl::PermissionDeniedError("not you");
    head.headers["authorization"] = "Bearer of-a-cookie";
    return absl::OkStatus();
  };
  // The body is announced and never comes.
  EXPECT_THAT(Talk("POST /v1/jobs HTTP/1.1\r\nHost: a\r\n"
                   "Content-Length: 1000\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("not you")));
  EXPECT_THAT(backend_->calls, IsEmpty());
  Get("/v1/jobs/x");
  ASSERT_THAT(backend_->calls, SizeIs(1));
  EXPECT_THAT(backend_->calls[0].call.metadata,
              ::testing::Contains(
                  ::testing::Pair("authorization", "Bearer of-a-cookie")));
}

TEST_F(ConnectionTest, IdempotencyKeyIsTheRequestId) {
  Send("POST", "/v1/jobs",
       "Content-Type: application/json\r\nIdempotency-Key: \"k-1\"\r\n", "{}");
  EXPECT_EQ(Asked<v1::SubmitJobRequest>().client_request_id(), "k-1");
  EXPECT_THAT(Send("POST", "/v1/jobs",
                   "Content-Type: application/json\r\nIdempotency-Key: k-2\r\n",
                   R"({"client_request_id":"k-3"})"),
              StartsWith("HTTP/1.1 400"));
}

TEST_F(ConnectionTest, HeadHasNoBody) {
  const std::string answer =
      Talk("HEAD /v1/devices HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Body(answer), IsEmpty());
}

TEST_F(ConnectionTest, OversizedRequestsAreRefused) {
  EXPECT_THAT(
      Get("/v1/jobs", absl::StrCat("X: ", std::string(3000, 'x'), "\r\n")),
      StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Get(absl::StrCat("/v1/jobs/", std::string(3000, 'x'))),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Send("POST", "/v1/jobs", "Content-Type: application/json\r\n",
                   std::string(1001, ' ')),
              StartsWith("HTTP/1.1 413"));
  // Announced to be small, sent in chunks without end.
  std::string chunks =
      "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&chunks, "64\r\n", std::string(100, ' '), "\r\n");
  }
  EXPECT_THAT(Talk(chunks), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(backend_->calls, IsEmpty());
}

TEST_F(ConnectionTest, MalformedRequestsAreRefusedAndTheConnectionEnds) {
  const std::string next = "GET /v1/devices HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const std::string bad : {
           "\x16\x03\x01\x02 TLS where none is spoken\r\n\r\n",
           "GET\r\n\r\n",
           "GET /v1/jobs HTTP/9.9\r\nHost: a\r\n\r\n",
           "GET /v1/jobs HTTP/1.1\r\nHost a\r\n\r\n",
           "GET /v1/jobs HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
           "POST /v1/jobs HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
           "POST /v1/jobs HTTP/1.1\r\nContent-Length: 1\r\n"
           "Content-Length: 2\r\n\r\n",
           "POST /v1/jobs HTTP/1.1\r\nContent-Length: 3\r\n"
           "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       }) {
    const std::string answer = Talk(bad + next);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400")) << bad;
    EXPECT_THAT(answer, HasSubstr("Connection: close")) << bad;
    EXPECT_THAT(backend_->calls, IsEmpty()) << bad;
  }
}

TEST_F(ConnectionTest, SlowHeadsAndBodiesAreAnswered408) {
  EXPECT_THAT(Talk("GET /v1/jobs HTT", 1, true), StartsWith("HTTP/1.1 408"));
  EXPECT_THAT(Talk("POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Type: "
                   "application/json\r\nContent-Length: 9\r\n\r\n{",
                   1, true),
              StartsWith("HTTP/1.1 408"));
  // Who says nothing at all is told nothing.
  EXPECT_THAT(Talk("", 1, true), IsEmpty());
  EXPECT_THAT(backend_->calls, IsEmpty());
}

TEST_F(ConnectionTest, TokensThatGrpcWouldNotTakeAreRefusedHere) {
  EXPECT_THAT(
      Get("/v1/jobs", "Authorization: Bearer \x80\xff\r\n"),
      AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("WWW-Authenticate: Bearer")));
  EXPECT_THAT(backend_->calls, IsEmpty());
}

TEST_F(ConnectionTest, WithoutTokensOnlyLoopbackNamesAreAnswered) {
  services_.loopback_hosts_only = true;
  const auto asking = [&](absl::string_view host) {
    return Talk(
        absl::StrCat("GET /v1/jobs HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
  };
  EXPECT_THAT(asking("evil.example:80"), StartsWith("HTTP/1.1 421"));
  EXPECT_THAT(asking("127.evil.example"), StartsWith("HTTP/1.1 421"));
  EXPECT_THAT(backend_->calls, IsEmpty());
  for (const char* host : {"localhost:7071", "127.0.0.1:1", "[::1]:7071"}) {
    EXPECT_THAT(asking(host), StartsWith("HTTP/1.1 200")) << host;
  }
}

TEST_F(ConnectionTest, EventsAreServerSent) {
  v1::JobEvent event;
  event.set_sequence(3);
  event.mutable_log()->set_text("line\nline");
  v1::JobEvent end;
  end.set_sequence(4);
  end.mutable_job_state()->set_state(v1::SUCCEEDED);
  backend_->answers = {event.SerializeAsString(), end.SerializeAsString()};
  const std::string answer = Get("/v1/jobs/x/events", "Last-Event-ID: 2\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(answer, HasSubstr("id: 3\nevent: log\ndata: {"));
  EXPECT_THAT(answer, HasSubstr("line\\nline"));
  EXPECT_THAT(answer, HasSubstr("id: 4\nevent: job_state\ndata: {"));
  EXPECT_THAT(answer, HasSubstr("event: end\n"));
  EXPECT_EQ(Asked<v1::WatchJobRequest>().after_sequence(), 2);
}

TEST_F(ConnectionTest, AnEventStreamWithoutNewsTellsBrowsersToStayAway) {
  EXPECT_THAT(Get("/v1/jobs/x/events", "Last-Event-ID: 9\r\n"),
              StartsWith("HTTP/1.1 204"));
}

TEST_F(ConnectionTest, AnEventStreamThatBreaksSaysWhy) {
  v1::JobEvent event;
  event.set_sequence(1);
  backend_->answers = {event.SerializeAsString()};
  backend_->status = absl::UnavailableError("the server stops");
  EXPECT_THAT(
      Get("/v1/jobs/x/events"),
      AllOf(HasSubstr("event: error\ndata: {"), HasSubstr("the server stops")));
}

TEST_F(ConnectionTest, UploadsAreStreamedWithDigestAndOffset) {
  v1::UploadResponse response;
  response.set_committed_bytes(5);
  backend_->answers = {response.SerializeAsString()};
  EXPECT_THAT(Send("PUT", absl::StrCat("/v1/blobs/", kSha), "", "hello"),
              AllOf(StartsWith("HTTP/1.1 201"), HasSubstr("Upload-Offset: 5")));
  auto message = Asked<v1::UploadRequest>();
  EXPECT_EQ(message.digest().sha256(), kSha);
  EXPECT_EQ(message.digest().size_bytes(), 5);
  EXPECT_EQ(message.data(), "hello");

  backend_->answers.clear();
  backend_->status = absl::FailedPreconditionError("more is to come");
  EXPECT_THAT(Send("PATCH", absl::StrCat("/v1/blobs/", kSha),
                   "Content-Range: bytes 2-4/9\r\n", "llo"),
              AllOf(StartsWith("HTTP/1.1 202"), HasSubstr("Upload-Offset: 5")));
  message = Asked<v1::UploadRequest>();
  EXPECT_EQ(message.offset(), 2);
  EXPECT_EQ(message.digest().size_bytes(), 9);
}

TEST_F(ConnectionTest, FilesLargerThanAnyTakenAreRefusedForGood) {
  services_.limits.max_file_bytes = 8;
  const std::string target = absl::StrCat("/v1/blobs/", kSha);
  EXPECT_THAT(Send("PUT", target, "", "nine byte"),
              AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("9 bytes"),
                    Not(HasSubstr("Retry-After"))));
  EXPECT_THAT(Send("PUT", target, "Content-Range: bytes 0-4/9\r\n", "hello"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(backend_->calls, IsEmpty());
  backend_->answers = {v1::UploadResponse().SerializeAsString()};
  EXPECT_THAT(Send("PUT", target, "", "the most"), StartsWith("HTTP/1.1 201"));
}

TEST_F(ConnectionTest, UploadsThatContradictThemselvesAreRefused) {
  const std::string target = absl::StrCat("/v1/blobs/", kSha);
  for (const char* range :
       {"bytes 0-4/4", "bytes 4-0/9", "bytes 0-9/20", "bytes */5",
        "lines 0-4/5", "bytes 0-4/*", "bytes -1-4/9",
        "bytes 0-4/99999999999999999999999999"}) {
    EXPECT_THAT(Send("PUT", target,
                     absl::StrCat("Content-Range: ", range, "\r\n"), "hello"),
                StartsWith("HTTP/1.1 400"))
        << range;
  }
  EXPECT_THAT(Talk(absl::StrCat("PUT ", target,
                                " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                "chunked\r\n\r\n0\r\n\r\n")),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(backend_->calls, IsEmpty());
  backend_->status = absl::DataLossError("another SHA-256");
  EXPECT_THAT(Send("PUT", target, "", "hello"),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("DATA_LOSS")));
}

TEST_F(ConnectionTest, AnUploadThatBreaksOffKeepsWhatCame) {
  const std::string answer =
      Talk(absl::StrCat("PUT /v1/blobs/", kSha,
                        " HTTP/1.1\r\nHost: a\r\nContent-Length: 2097152\r\n"
                        "Expect: 100-continue\r\n\r\n",
                        std::string(1 << 20, 'x'), "yy"));
  EXPECT_EQ(answer, "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_THAT(backend_->calls, SizeIs(1));
  EXPECT_EQ(Asked<v1::UploadRequest>().data().size(), 1u << 20);
}

TEST_F(ConnectionTest, DownloadsHaveEtagsAndRanges) {
  const auto answers = [&](const std::string& data, int64_t offset) {
    v1::DownloadResponse response;
    response.set_total_bytes(10);
    response.set_offset(offset);
    response.set_data(data);
    backend_->answers = {response.SerializeAsString()};
  };
  const std::string target = absl::StrCat("/v1/blobs/", kSha);
  answers("0123456789", 0);
  EXPECT_THAT(Get(target),
              AllOf(StartsWith("HTTP/1.1 200"),
                    HasSubstr(absl::StrCat("ETag: \"", kSha, "\"")),
                    HasSubstr("\r\n\r\n0123456789")));
  answers("345", 3);
  EXPECT_THAT(Get(target, "Range: bytes=3-5\r\n"),
              AllOf(StartsWith("HTTP/1.1 206"),
                    HasSubstr("Content-Range: bytes 3-5/10"),
                    HasSubstr("\r\n\r\n345")));
  EXPECT_EQ(Asked<v1::DownloadRequest>().offset(), 3);
  EXPECT_EQ(Asked<v1::DownloadRequest>().max_bytes(), 3);
  answers("89", 8);
  EXPECT_THAT(Get(target, "Range: bytes=-2\r\n"),
              HasSubstr("Content-Range: bytes 8-9/10"));
  EXPECT_THAT(Get(target, "Range: bytes=10-\r\n"),
              AllOf(StartsWith("HTTP/1.1 416"),
                    HasSubstr("Content-Range: bytes */10")));
  const std::string known = absl::StrCat("If-None-Match: \"", kSha, "\"\r\n");
  EXPECT_THAT(Get(target, known), StartsWith("HTTP/1.1 304"));
  // Of a file that changed since, all is sent.
  answers("0123456789", 0);
  EXPECT_THAT(Get(target, "Range: bytes=3-5\r\nIf-Range: \"other\"\r\n"),
              StartsWith("HTTP/1.1 200"));
}

TEST_F(ConnectionTest, OldClientsGetNoChunksAndAClosedConnection) {
  v1::JobEvent event;
  event.set_sequence(1);
  backend_->answers = {event.SerializeAsString()};
  EXPECT_THAT(Talk("GET /v1/jobs/x/events HTTP/1.0\r\n\r\n"),
              AllOf(HasSubstr("Connection: close"), Not(HasSubstr("chunked")),
                    HasSubstr("\r\n\r\nid: 1\n")));
}

TEST_F(ConnectionTest, PagesCarryNothingFromElsewhere) {
  EXPECT_THAT(Get("/docs"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("default-src 'none'"),
                    Not(HasSubstr("https://"))));
  EXPECT_THAT(Get("/docs.js"), HasSubstr("Content-Type: text/javascript"));
  const auto api = nlohmann::json::parse(Body(Get("/openapi.json")));
  EXPECT_EQ(api["openapi"], "3.0.3");
  EXPECT_EQ(api["info"]["version"], "1.2.3");
}

}  // namespace
}  // namespace optfarm::http
