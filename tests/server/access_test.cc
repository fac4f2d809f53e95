// Who may do what, at both doors: tokens with scopes, their end, certificates.

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "optfarm/v1/tokens.grpc.pb.h"
#include "rpc/channel.h"
#include "server/access/farm_services.h"
#include "tests/server/rest_client.h"
#include "tests/server/server_fixture.h"
#include "tests/support/certificates.h"

namespace optfarm::server {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kOperator[] = "operators-own-token";

class AccessTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.http_address = "127.0.0.1:0";
    options_.token = kOperator;
    ServerFixture::SetUp();
  }
  RestClient Client(const std::string& token) {
    RestClient client(server_->http_address());
    client.SetToken(token);
    return client;
  }
  // Makes a token and returns what the server answered.
  nlohmann::json Create(const std::string& scopes,
                        const std::string& lifetime = "3600s") {
    const RestAnswer answer = Client(kOperator).Post(
        "/v1/tokens", absl::StrCat(R"({"name":"t","scopes":[)", scopes,
                                   R"(],"lifetime":")", lifetime, "\"}"));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
  std::string Secret(const std::string& scopes) {
    return Create(scopes)["secret"];
  }
  // How a call of any method ends, with an empty request.
  grpc::StatusCode CallAs(const std::string& token, const std::string& rpc) {
    grpc::GenericStub stub(channel_);
    Context context;
    if (!token.empty()) {
      context.AddMetadata("authorization", "Bearer " + token);
    }
    grpc::ByteBuffer request, response;
    request = grpc::ByteBuffer(nullptr, 0);
    grpc::Status outcome;
    absl::Notification done;
    stub.UnaryCall(&context, rpc, grpc::StubOptions(), &request, &response,
                   [&](grpc::Status status) {
                     outcome = status;
                     done.Notify();
                   });
    done.WaitForNotification();
    return outcome.error_code();
  }
  static std::vector<std::string> AllMethods() {
    std::vector<std::string> methods;
    for (const auto* method : FarmMethods()) {
      methods.push_back(absl::StrCat("/", method->service()->full_name(), "/",
                                     method->name()));
    }
    return methods;
  }
};

TEST_F(AccessTest, EveryMethodRefusesWhoHasNoTokenOrNoScope) {
  const std::string device = Secret("\"DEVICE\"");
  int refused = 0;
  for (const std::string& method : AllMethods()) {
    EXPECT_EQ(CallAs("", method), grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_EQ(CallAs("guess", method), grpc::StatusCode::UNAUTHENTICATED)
        << method;
    const grpc::StatusCode code = CallAs(device, method);
    refused += code == grpc::StatusCode::PERMISSION_DENIED;
    EXPECT_NE(code, grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_NE(CallAs(kOperator, method), grpc::StatusCode::PERMISSION_DENIED)
        << method;
  }
  // All but the four that move files and the one that says who calls.
  // Synchronize is for agents too, but an empty request is not an agent's.
  EXPECT_EQ(refused, static_cast<int>(AllMethods().size()) - 5);
}

TEST_F(AccessTest, ScopesDecideWhatATokenMayDo) {
  RestClient reader = Client(Secret("\"READ\""));
  EXPECT_EQ(reader.Get("/v1/jobs").status, 200);
  EXPECT_EQ(reader.Get("/metrics").status, 200);
  EXPECT_EQ(reader.Post("/v1/jobs", "{}").status, 403);
  EXPECT_EQ(reader.Get("/v1/tokens").status, 403);
  EXPECT_THAT(reader.Get("/v1/tokens").body,
              HasSubstr("needs the scope admin; it has read\""));
  RestClient submitter = Client(Secret("\"SUBMIT\""));
  EXPECT_EQ(submitter.Get("/v1/jobs").status, 403);
  EXPECT_EQ(submitter.Get("/metrics").status, 403);
  EXPECT_EQ(submitter.Post("/v1/jobs", "{}").status, 400);
  RestClient admin = Client(Secret("\"ADMIN\""));
  EXPECT_EQ(admin.Get("/v1/jobs").status, 200);
  EXPECT_EQ(admin.Get("/v1/tokens").status, 200);

  RestClient nobody(server_->http_address());
  EXPECT_EQ(nobody.Get("/v1/jobs").status, 401);
  EXPECT_EQ(nobody.Get("/metrics").status, 401);
  EXPECT_EQ(nobody.Get("/livez").status, 200);
  EXPECT_EQ(nobody.Get("/openapi.json").status, 200);
}

TEST_F(AccessTest, WorkersNeedTheScopeOfWorkersAndAgentsTheirs) {
  const auto synchronize = [&](const std::string& token,
                               v1::SynchronizeRequest::Kind kind) {
    Context context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::SynchronizeRequest request = WorkerCall();
    request.set_kind(kind);
    // A participant stays with the token that it first called with.
    if (kind == v1::SynchronizeRequest::AGENT) {
      request.set_participant_id("agent-1");
    }
    v1::SynchronizeResponse response;
    return work_->Synchronize(&context, request, &response).error_code();
  };
  const std::string worker = Secret("\"WORK\"");
  const std::string agent = Secret("\"DEVICE\"");
  EXPECT_EQ(synchronize(worker, v1::SynchronizeRequest::WORKER),
            grpc::StatusCode::OK);
  EXPECT_EQ(synchronize(worker, v1::SynchronizeRequest::AGENT),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(synchronize(agent, v1::SynchronizeRequest::AGENT),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(synchronize(agent, v1::SynchronizeRequest::WORKER),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(AccessTest, TokensEndWhenTheyExpireOrAreRevoked) {
  const std::string hour = Secret("\"READ\"");
  const nlohmann::json day = Create("\"READ\"", "86400s");
  clock_.Advance(absl::Hours(2));
  EXPECT_EQ(Client(hour).Get("/v1/jobs").status, 401);
  RestClient client = Client(day["secret"]);
  EXPECT_EQ(client.Get("/v1/jobs").status, 200);
  const std::string path =
      absl::StrCat("/v1/tokens/", std::string(day["token"]["token_id"]));
  const RestAnswer revoked = Client(kOperator).Call("DELETE", path, {}, "");
  EXPECT_EQ(revoked.status, 200) << revoked.body;
  EXPECT_TRUE(revoked.json().contains("revoke_time"));
  EXPECT_EQ(client.Get("/v1/jobs").status, 401);
  const RestAnswer none =
      Client(kOperator).Call("DELETE", "/v1/tokens/none", {}, "");
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(none.body, HasSubstr("there is no token 'none'"));
  EXPECT_THAT(RestClient(server_->http_address()).Get("/v1/jobs").body,
              HasSubstr("Authorization: Bearer TOKEN"));
}

TEST_F(AccessTest, TokensOutliveARestartAndTheirSecretsAreNotKept) {
  const std::string secret = Secret("\"READ\"");
  Restart();
  EXPECT_EQ(Client(secret).Get("/v1/jobs").status, 200);
  const RestAnswer list = Client(kOperator).Get("/v1/tokens");
  EXPECT_EQ(list.json()["tokens"].size(), 1u);
  EXPECT_THAT(list.body, Not(HasSubstr(secret)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto names, ListFolder(options_.data_dir));
  EXPECT_THAT(names, Contains("tokens.db"));
  for (const std::string& name : names) {
    const auto bytes = ReadFile(JoinPath(options_.data_dir, name));
    if (!bytes.ok()) continue;
    EXPECT_THAT(*bytes, Not(HasSubstr(secret))) << name;
    EXPECT_THAT(*bytes, Not(HasSubstr(kOperator))) << name;
  }
}

TEST_F(AccessTest, MalformedTokensAreNotMade) {
  RestClient client = Client(kOperator);
  for (const char* body :
       {R"({})", R"({"name":"t"})", R"({"name":"a b","scopes":["READ"]})",
        R"({"name":"t","scopes":["READ"],"lifetime":"1s"})",
        R"({"name":"t","scopes":["READ"],"lifetime":"-5s"})",
        R"({"name":"t","scopes":["SCOPE_UNSPECIFIED"]})",
        R"({"name":"t","scopes":[17]})"}) {
    EXPECT_EQ(client.Post("/v1/tokens", body).status, 400) << body;
  }
  EXPECT_EQ(client.Get("/v1/tokens").json()["tokens"].size(), 0u);
}

// Calls that stay open, and what workers may read.
class OpenCallsTest : public AccessTest {
 protected:
  struct TokenContext : Context {
    explicit TokenContext(const std::string& token) {
      AddMetadata("authorization", "Bearer " + token);
    }
  };

  void Revoke(const nlohmann::json& token) {
    const std::string id = token["token"]["token_id"];
    EXPECT_EQ(Client(kOperator)
                  .Call("DELETE", absl::StrCat("/v1/tokens/", id), {}, "")
                  .status,
              200);
  }
  // How a download as `token` ends.
  grpc::StatusCode Download(const std::string& token,
                            const std::string& sha256) {
    TokenContext context(token);
    v1::DownloadRequest request;
    request.mutable_digest()->set_sha256(sha256);
    const auto reader = models_->Download(&context, request);
    v1::DownloadResponse response;
    while (reader->Read(&response)) continue;
    return reader->Finish().error_code();
  }
  absl::StatusOr<v1::SynchronizeResponse> SynchronizeAs(
      const std::string& token, const v1::SynchronizeRequest& request) {
    TokenContext context(token);
    v1::SynchronizeResponse response;
    const absl::Status status =
        rpc::FromGrpc(work_->Synchronize(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
  // Uploads a model and submits a job with it; the model's digest.
  std::string SubmitModel(const std::string& bytes) {
    TokenContext upload(kOperator);
    v1::UploadResponse uploaded;
    const auto writer = models_->Upload(&upload, &uploaded);
    v1::UploadRequest piece;
    piece.mutable_digest()->set_sha256(Sha256Hex(bytes));
    piece.mutable_digest()->set_size_bytes(static_cast<int64_t>(bytes.size()));
    piece.set_data(bytes);
    writer->Write(piece);
    writer->WritesDone();
    EXPECT_TRUE(writer->Finish().ok());
    v1::SubmitJobRequest request;
    v1::JobSpec& spec = *request.mutable_spec();
    *spec.mutable_model()->mutable_digest() = piece.digest();
    spec.mutable_model()->set_name("model.pb");
    spec.mutable_recipe()->set_name("int8");
    spec.mutable_recipe()->set_transform_string("fold_constants");
    TokenContext context(kOperator);
    v1::SubmitJobResponse response;
    const grpc::Status status = jobs_->SubmitJob(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    job_id_ = response.job().job_id();
    return piece.digest().sha256();
  }

  std::string job_id_;
};

TEST_F(OpenCallsTest, WatchesAndUploadsEndWithTheirToken) {
  SubmitModel("\x0a\x02\x0a");
  const nlohmann::json token = Create("\"READ\",\"SUBMIT\"");
  TokenContext watch(token["secret"]);
  v1::WatchJobRequest request;
  request.set_job_id(job_id_);
  const auto watcher = jobs_->WatchJob(&watch, request);
  v1::JobEvent event;
  ASSERT_TRUE(watcher->Read(&event));
  TokenContext upload(token["secret"]);
  v1::UploadResponse uploaded;
  const auto writer = models_->Upload(&upload, &uploaded);
  v1::UploadRequest piece;
  piece.mutable_digest()->set_sha256(Sha256Hex("0123456789"));
  piece.mutable_digest()->set_size_bytes(10);
  piece.set_data("01234");
  ASSERT_TRUE(writer->Write(piece));
  Revoke(token);
  while (watcher->Read(&event)) continue;
  EXPECT_EQ(watcher->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // It may have come too late to be let in.
  EXPECT_THAT(
      writer->Finish().error_code(),
      AnyOf(grpc::StatusCode::CANCELLED, grpc::StatusCode::UNAUTHENTICATED));
}

TEST_F(OpenCallsTest, HeldPollsEndWithTheirToken) {
  const nlohmann::json token = Create("\"WORK\"");
  v1::SynchronizeRequest request = WorkerCall();
  request.mutable_long_poll()->set_seconds(30);
  const absl::Time begin = absl::Now();
  std::thread revoker([&] {
    // Once it is held; earlier it is refused, which is as good.
    absl::SleepFor(absl::Milliseconds(300));
    Revoke(token);
  });
  const auto ended = SynchronizeAs(token["secret"], request);
  revoker.join();
  EXPECT_THAT(ended.status().code(), AnyOf(absl::StatusCode::kCancelled,
                                           absl::StatusCode::kUnauthenticated));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

TEST_F(OpenCallsTest, WorkersReadTheFilesOfTheTasksThatTheyHold) {
  const std::string first = SubmitModel("\x0a\x02\x0a");
  const std::string second = SubmitModel("\x0a\x02\x0a\x0a");
  const std::string holder = Secret("\"WORK\"");
  const std::string other = Secret("\"WORK\"");
  const std::string agent = Secret("\"DEVICE\"");
  // A holder of an older lease may not have called since the server started.
  EXPECT_EQ(Download(holder, first), grpc::StatusCode::UNAVAILABLE);
  clock_.Advance(options_.scheduling.lease * 2);
  EXPECT_EQ(Download(holder, first), grpc::StatusCode::NOT_FOUND);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto leased,
                               SynchronizeAs(holder, WorkerCall()));
  ASSERT_EQ(leased.new_tasks_size(), 1);
  ASSERT_EQ(leased.new_tasks(0).optimize().model().digest().sha256(), first);
  EXPECT_EQ(Download(holder, first), grpc::StatusCode::OK);
  EXPECT_EQ(Download(holder, second), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Download(other, first), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Download(agent, first), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Download(kOperator, second), grpc::StatusCode::OK);
  // Nor does it help to call oneself as the holder does.
  EXPECT_EQ(SynchronizeAs(other, WorkerCall()).status().code(),
            absl::StatusCode::kPermissionDenied);
  // The lease is given back, and with it the file.
  v1::SynchronizeRequest done = WorkerCall();
  done.set_free_slots(0);
  v1::HeldTask& held = *done.add_held();
  held.set_task_id(leased.new_tasks(0).task_id());
  held.set_attempt(leased.new_tasks(0).attempt());
  held.mutable_completion()->mutable_released()->set_reason("enough");
  ASSERT_THAT(SynchronizeAs(holder, done), ::optfarm::testing::IsOk());
  EXPECT_EQ(Download(holder, first), grpc::StatusCode::NOT_FOUND);
}

class TlsTest : public AccessTest {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK_AND_ASSIGN(pems_, MakeTemporaryFolder("tls"));
    const testing::Certificate own = authority_.Sign("server");
    options_.tls.certificate = Keep("server.pem", own.certificate);
    options_.tls.key = Keep("server.key", own.key);
    AccessTest::SetUp();
  }
  void TearDown() override {
    AccessTest::TearDown();
    EXPECT_THAT(RemoveAll(pems_), ::optfarm::testing::IsOk());
  }
  std::string Keep(const std::string& name, const std::string& pem) {
    const std::string path = JoinPath(pems_, name);
    EXPECT_THAT(WriteFileAtomically(path, pem), ::optfarm::testing::IsOk());
    return path;
  }
  absl::StatusOr<std::shared_ptr<grpc::Channel>> ChannelWith(
      const rpc::ClientTls& tls, const std::string& token = kOperator) {
    rpc::ChannelOptions options;
    options.target = server_->address();
    options.token_file = Keep("token", token);
    options.tls = tls;
    return rpc::MakeChannel(options);
  }
  // How a worker's call ends.
  absl::Status SynchronizeWith(const rpc::ClientTls& tls) {
    const auto channel = ChannelWith(tls);
    if (!channel.ok()) return channel.status();
    const auto work = v1::WorkService::NewStub(*channel);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    v1::SynchronizeResponse response;
    return rpc::FromGrpc(work->Synchronize(&context, WorkerCall(), &response));
  }

  testing::CertificateAuthority authority_{"authority"};
  testing::CertificateAuthority stranger_{"stranger"};
  std::string pems_;
};

TEST_F(TlsTest, BothDoorsSpeakTlsToWhoTrustsThem) {
  RestClient client = Client(kOperator);
  client.SetTls(authority_.certificate());
  EXPECT_EQ(client.Get("/v1/jobs").status, 200);
  rpc::ClientTls tls;
  tls.ca = Keep("ca.pem", authority_.certificate());
  EXPECT_THAT(SynchronizeWith(tls), ::optfarm::testing::IsOk());
}

TEST_F(TlsTest, NobodyIsAnsweredInClearTextOrTrustsAStranger) {
  EXPECT_EQ(Client(kOperator).Get("/livez").status, 0);
  RestClient distrustful = Client(kOperator);
  distrustful.SetTls(stranger_.certificate());
  EXPECT_EQ(distrustful.Get("/livez").status, 0);
  EXPECT_EQ(SynchronizeWith({}).code(), absl::StatusCode::kUnavailable);
  rpc::ClientTls tls;
  tls.ca = Keep("stranger.pem", stranger_.certificate());
  EXPECT_EQ(SynchronizeWith(tls).code(), absl::StatusCode::kUnavailable);
}

TEST_F(TlsTest, WorkersBringCertificatesWhereTheServerAsksForThem) {
  options_.tls.client_ca = Keep("clients.pem", authority_.certificate());
  Restart();
  rpc::ClientTls tls;
  tls.ca = Keep("ca.pem", authority_.certificate());
  EXPECT_EQ(SynchronizeWith(tls).code(), absl::StatusCode::kUnauthenticated);
  const testing::Certificate own = authority_.Sign("worker");
  tls.certificate = Keep("worker.pem", own.certificate);
  tls.key = Keep("worker.key", own.key);
  EXPECT_THAT(SynchronizeWith(tls), ::optfarm::testing::IsOk());
  const testing::Certificate other = stranger_.Sign("worker");
  tls.certificate = Keep("other.pem", other.certificate);
  tls.key = Keep("other.key", other.key);
  EXPECT_EQ(SynchronizeWith(tls).code(), absl::StatusCode::kUnavailable);
  // Who only submits and reads needs none.
  RestClient client = Client(kOperator);
  client.SetTls(authority_.certificate());
  EXPECT_EQ(client.Get("/v1/jobs").status, 200);
  client.SetTls(authority_.certificate(), stranger_.Sign("reader"));
  EXPECT_EQ(client.Get("/v1/jobs").status, 0);
}

TEST_F(TlsTest, AStolenTokenOfAWorkerIsWorthNothingWithoutACertificate) {
  RestClient operators = Client(kOperator);
  operators.SetTls(authority_.certificate());
  const RestAnswer made = operators.Post(
      "/v1/tokens", R"({"name":"t","scopes":["WORK"],"lifetime":"3600s"})");
  ASSERT_EQ(made.status, 200) << made.body;
  const std::string token = made.json()["secret"];
  options_.tls.client_ca = Keep("clients.pem", authority_.certificate());
  Restart();
  const testing::Certificate own = authority_.Sign("worker");
  rpc::ClientTls tls;
  tls.ca = Keep("ca.pem", authority_.certificate());
  for (const bool certified : {false, true}) {
    if (certified) {
      tls.certificate = Keep("worker.pem", own.certificate);
      tls.key = Keep("worker.key", own.key);
    }
    OPTFARM_ASSERT_OK_AND_ASSIGN(channel_, ChannelWith(tls, token));
    int refused = 0;
    for (const std::string& method : AllMethods()) {
      refused += CallAs("", method) == grpc::StatusCode::UNAUTHENTICATED;
    }
    // What a worker may not call is refused for that reason.
    EXPECT_EQ(refused, certified ? 0 : 6);
    RestClient client = Client(token);
    client.SetTls(authority_.certificate(),
                  certified ? own : testing::Certificate());
    EXPECT_EQ(client.Get("/v1/whoami").status, certified ? 200 : 401);
    EXPECT_EQ(
        client.Get(absl::StrCat("/v1/blobs/", std::string(64, 'a'))).status,
        certified ? 503 : 401);
  }
}

TEST_F(TlsTest, FilesAreReadAgain) {
  RestClient client = Client(kOperator);
  client.SetTls(stranger_.certificate());
  EXPECT_EQ(client.Get("/livez").status, 0);
  const testing::Certificate renewed = stranger_.Sign("server");
  Keep("server.pem", renewed.certificate);
  // A key that does not fit changes nothing.
  EXPECT_EQ(server_->ReloadTls().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client.Get("/livez").status, 0);
  Keep("server.key", renewed.key);
  EXPECT_THAT(server_->ReloadTls(), ::optfarm::testing::IsOk());
  EXPECT_EQ(client.Get("/livez").status, 200);
  rpc::ClientTls tls;
  tls.ca = Keep("stranger.pem", stranger_.certificate());
  absl::Status status;
  for (int i = 0; i < 100; ++i) {
    status = SynchronizeWith(tls);
    if (status.ok()) break;
    absl::SleepFor(absl::Milliseconds(200));
  }
  EXPECT_THAT(status, ::optfarm::testing::IsOk());
}

TEST_F(TlsTest, FilesThatDoNotFitAreNamed) {
  ServerOptions second = options_;
  second.data_dir = JoinPath(folder_, "second");
  second.tls.key = "";
  EXPECT_EQ(Server::Start(second).status().code(),
            absl::StatusCode::kInvalidArgument);
  second.tls.key = Keep("no.pem", "not a key");
  EXPECT_EQ(Server::Start(second).status().code(),
            absl::StatusCode::kInvalidArgument);
  second.tls.key = "/does/not/exist";
  EXPECT_EQ(Server::Start(second).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace optfarm::server
