// Projects that share a server see nothing of each other, use no more than
// their part, and leave a trace of what they did.

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "optfarm/v1/farm.grpc.pb.h"
#include "tests/server/rest_client.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kOperator[] = "operator-secret";
// As a GraphDef begins: a node.
const char kModel[] = "\x0a\x02\x0a\x00";

// 201 for a file that was not there.
auto IsTaken() { return AnyOf(200, 201); }

class ProjectsTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.http_address = "127.0.0.1:0";
    options_.token = kOperator;
    ServerFixture::SetUp();
    alice_ = Token("alice");
    bob_ = Token("bob");
  }

  RestClient Client(const std::string& token) {
    RestClient client(server_->http_address());
    client.SetToken(token);
    return client;
  }
  RestAnswer MakeToken(const std::string& project, const std::string& scopes) {
    return Client(kOperator).Post(
        "/v1/tokens",
        absl::StrCat(R"({"name":"of-)", project, R"(","project":")", project,
                     R"(","scopes":[)", scopes, "]}"));
  }
  std::string Token(const std::string& project) {
    const RestAnswer answer = MakeToken(project, R"("SUBMIT","READ")");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["secret"];
  }
  static std::string PathOf(const std::string& bytes) {
    return absl::StrCat("/v1/blobs/", Sha256Hex(bytes));
  }
  RestAnswer Bring(const std::string& token, const std::string& bytes) {
    return Client(token).Call("PUT", PathOf(bytes), {}, bytes);
  }
  static std::string SubmitBody(const std::string& bytes) {
    return absl::StrCat(
        R"({"spec":{"model":{"name":"m.pb","digest":{"sha256":")",
        Sha256Hex(bytes), R"(","size_bytes":")", bytes.size(),
        R"("}},"recipe":{"name":"r","transform_string":)",
        R"("fold_constants"}}})");
  }
  RestAnswer Submit(const std::string& token, const std::string& bytes,
                    const std::string& key = "") {
    RestClient::Headers headers;
    if (!key.empty()) headers["Idempotency-Key"] = key;
    return Client(token).Post("/v1/jobs", SubmitBody(bytes), headers);
  }
  std::string JobOf(const std::string& token, const std::string& key = "") {
    const std::string model(kModel, 3);
    EXPECT_THAT(Bring(token, model).status, IsTaken());
    const RestAnswer answer = Submit(token, model, key);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["job"]["job_id"];
  }
  // How a unary or streamed call over gRPC ends.
  template <typename Request>
  grpc::StatusCode CallAs(const std::string& token, const std::string& rpc,
                          const Request& request) {
    Context context;
    context.AddMetadata("authorization", "Bearer " + token);
    const std::string bytes = request.SerializeAsString();
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer out(&slice, 1);
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    auto stream = stub.PrepareCall(&context, rpc, &queue);
    void* tag = nullptr;
    bool ok = false;
    stream->StartCall(nullptr);
    queue.Next(&tag, &ok);
    stream->WriteLast(out, {}, nullptr);
    queue.Next(&tag, &ok);
    grpc::ByteBuffer in;
    do {
      stream->Read(&in, nullptr);
      queue.Next(&tag, &ok);
    } while (ok);
    grpc::Status status;
    stream->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    return status.error_code();
  }

  std::string alice_;
  std::string bob_;
};

TEST_F(ProjectsTest, AnotherProjectsJobsAndFilesAreNotThere) {
  const std::string model(kModel, 3);
  const std::string job = JobOf(alice_);
  const std::string path = absl::StrCat("/v1/jobs/", job);
  EXPECT_EQ(Client(alice_).Get(path).json()["project"], "alice");
  RestClient bob = Client(bob_);
  EXPECT_EQ(bob.Get(path).status, 404);
  // As a job that never was.
  EXPECT_EQ(bob.Get(path).body.size() - job.size(),
            bob.Get("/v1/jobs/none").body.size() - 4);
  EXPECT_EQ(bob.Get(path + "/events").status, 404);
  EXPECT_EQ(bob.Post(path + ":cancel", "{}").status, 404);
  EXPECT_EQ(bob.Get("/v1/jobs").json()["jobs"].size(), 0u);
  EXPECT_EQ(bob.Get(PathOf(model)).status, 404);
  const std::string upload =
      absl::StrCat(PathOf(model), "/upload?digest.size_bytes=3");
  EXPECT_EQ(bob.Get(upload).json().value("complete", false), false);
  EXPECT_EQ(Client(alice_).Get(upload).json()["complete"], true);
  // Knowing the digest is not having the model.
  const RestAnswer submitted = Submit(bob_, model);
  EXPECT_EQ(submitted.status, 400) << submitted.body;
  EXPECT_THAT(submitted.body, HasSubstr("not on the server"));
  EXPECT_EQ(bob.Get(absl::StrCat("/v1/results?job_id=", job))
                .json()["results"]
                .size(),
            0u);
  // The operator sees them all.
  EXPECT_EQ(Client(kOperator).Get(path).status, 200);
  EXPECT_EQ(Client(kOperator).Get("/v1/jobs").json()["jobs"].size(), 1u);
}

TEST_F(ProjectsTest, NorAreTheyOverGrpc) {
  const std::string model(kModel, 3);
  const std::string job = JobOf(alice_);
  const std::string service = "/optfarm.v1.JobService/";
  v1::GetJobRequest get;
  get.set_job_id(job);
  EXPECT_EQ(CallAs(alice_, service + "GetJob", get), grpc::OK);
  EXPECT_EQ(CallAs(bob_, service + "GetJob", get), grpc::NOT_FOUND);
  v1::CancelJobRequest cancel;
  cancel.set_job_id(job);
  EXPECT_EQ(CallAs(bob_, service + "CancelJob", cancel), grpc::NOT_FOUND);
  v1::WatchJobRequest watch;
  watch.set_job_id(job);
  watch.set_no_follow(true);
  EXPECT_EQ(CallAs(alice_, service + "WatchJob", watch), grpc::OK);
  EXPECT_EQ(CallAs(bob_, service + "WatchJob", watch), grpc::NOT_FOUND);
  v1::DownloadRequest download;
  download.mutable_digest()->set_sha256(Sha256Hex(model));
  const std::string models = "/optfarm.v1.ModelService/Download";
  EXPECT_EQ(CallAs(alice_, models, download), grpc::OK);
  EXPECT_EQ(CallAs(bob_, models, download), grpc::NOT_FOUND);
  v1::CompareResultsRequest compare;
  compare.mutable_a()->set_job_id(job);
  compare.mutable_b()->set_job_id(job);
  const std::string results = "/optfarm.v1.ResultService/CompareResults";
  EXPECT_EQ(CallAs(alice_, results, compare), grpc::OK);
  EXPECT_EQ(CallAs(bob_, results, compare), grpc::NOT_FOUND);
  EXPECT_EQ(
      CallAs(bob_, "/optfarm.v1.StoreService/QuerySql", v1::GetJobRequest()),
      grpc::PERMISSION_DENIED);
}

TEST_F(ProjectsTest, WhoBringsTheBytesHasThemToo) {
  const std::string model(kModel, 3);
  ASSERT_THAT(Bring(alice_, model).status, IsTaken());
  EXPECT_EQ(Client(bob_).Get(PathOf(model)).status, 404);
  // A file of that name with other bytes is none.
  EXPECT_NE(Client(bob_).Call("PUT", PathOf(model), {}, "abc").status, 200);
  EXPECT_EQ(Client(bob_).Get(PathOf(model)).status, 404);
  EXPECT_THAT(Bring(bob_, model).status, IsTaken());
  EXPECT_EQ(Client(bob_).Get(PathOf(model)).body, model);
  EXPECT_EQ(Client(alice_).Get(PathOf(model)).body, model);
}

TEST_F(ProjectsTest, NobodyGoesOnWithWhatAnotherProjectBegan) {
  const std::string bytes = "secret-model";
  const std::string path = PathOf(bytes);
  const RestAnswer half = Client(alice_).Call(
      "PUT", path, {{"Content-Range", "bytes 0-9/12"}}, bytes.substr(0, 10));
  EXPECT_EQ(half.status, 202) << half.body;
  const std::string asked =
      absl::StrCat(path, "/upload?digest.size_bytes=", bytes.size());
  EXPECT_EQ(Client(alice_).Get(asked).json()["committed_bytes"], "10");
  EXPECT_EQ(Client(bob_).Get(asked).json().value("committed_bytes", "0"), "0");
  EXPECT_NE(Client(bob_)
                .Call("PUT", path, {{"Content-Range", "bytes 10-11/12"}},
                      bytes.substr(10))
                .status,
            200);
  EXPECT_EQ(Client(bob_).Get(path).status, 404);
  EXPECT_EQ(Client(alice_)
                .Call("PUT", path, {{"Content-Range", "bytes 10-11/12"}},
                      bytes.substr(10))
                .status,
            201);
  EXPECT_EQ(Client(alice_).Get(path).body, bytes);
}

TEST_F(ProjectsTest, WhatAJobMadeIsOfItsProject) {
  const std::string job = JobOf(alice_);
  const std::string worker = MakeToken("", R"("WORK")").json()["secret"];
  v1::SynchronizeRequest call = WorkerCall();
  const auto synchronize = [&] {
    Context context;
    context.AddMetadata("authorization", "Bearer " + worker);
    v1::SynchronizeResponse response;
    EXPECT_TRUE(work_->Synchronize(&context, call, &response).ok());
    return response;
  };
  const v1::SynchronizeResponse leased = synchronize();
  ASSERT_EQ(leased.new_tasks_size(), 1);
  // The worker reads any model, and brings what it made.
  EXPECT_EQ(Client(worker).Get(PathOf(std::string(kModel, 3))).status, 200);
  ASSERT_THAT(Bring(worker, "optimized").status, IsTaken());
  EXPECT_EQ(Client(alice_).Get(PathOf("optimized")).status, 404);
  v1::HeldTask& held = *call.add_held();
  held.set_task_id(leased.new_tasks(0).task_id());
  held.set_attempt(leased.new_tasks(0).attempt());
  v1::Report& report = *held.mutable_completion()->mutable_report();
  report.set_passed(true);
  report.mutable_optimized_model()->set_sha256(Sha256Hex("optimized"));
  report.mutable_optimized_model()->set_size_bytes(9);
  call.set_free_slots(0);
  EXPECT_EQ(synchronize().verdicts(0).verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(Client(alice_).Get(PathOf("optimized")).body, "optimized");
  EXPECT_EQ(Client(bob_).Get(PathOf("optimized")).status, 404);
  // The same work for another project is done anew, and takes over nothing.
  const RestAnswer again =
      Client(bob_).Get(absl::StrCat("/v1/jobs/", JobOf(bob_)));
  EXPECT_EQ(again.json().value("from_cache", false), false);
  EXPECT_THAT(again.body, ::testing::Not(HasSubstr(job)));
}

TEST_F(ProjectsTest, OneRequestIdInTwoProjectsIsTwoJobs) {
  const std::string first = JobOf(alice_, "nightly-1");
  const std::string second = JobOf(bob_, "nightly-1");
  EXPECT_NE(first, second);
  EXPECT_EQ(JobOf(alice_, "nightly-1"), first);
  EXPECT_EQ(JobOf(bob_, "nightly-1"), second);
  // Another job under the same id is refused, and the id is named as given.
  const std::string other(kModel, 4);
  EXPECT_EQ(Bring(alice_, other).status, 201);
  const RestAnswer refused = Submit(alice_, other, "nightly-1");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("'nightly-1' was used"));
}

TEST_F(ProjectsTest, TokenOfAProjectHasNoScopeThatSeesOthers) {
  for (const char* scope : {R"("WORK")", R"("DEVICE")", R"("ADMIN","READ")"}) {
    EXPECT_EQ(MakeToken("alice", scope).status, 400);
    EXPECT_EQ(MakeToken("", scope).status, 200);
  }
  EXPECT_EQ(MakeToken("no/slash", R"("READ")").status, 400);
  // Without a project it is the one that all was in before there were others.
  const auto token = MakeToken("", R"("READ")").json()["token"];
  EXPECT_EQ(token["project"], "default");
}

class ProjectLimitsTest : public ProjectsTest {
 protected:
  void SetUp() override {
    ProjectLimits& limits = options_.project_limits;
    limits.max_bytes = 20;
    limits.max_live_jobs = 2;
    limits.max_jobs_a_day = 3;
    ProjectsTest::SetUp();
  }
};

TEST_F(ProjectLimitsTest, FilesStopAtTheBytesOfAProject) {
  EXPECT_THAT(Bring(alice_, "ten bytes.").status, IsTaken());
  EXPECT_THAT(Bring(alice_, "ten again.").status, IsTaken());
  // Once is once.
  EXPECT_THAT(Bring(alice_, "ten again.").status, IsTaken());
  const RestAnswer full = Bring(alice_, "x");
  EXPECT_EQ(full.status, 429);
  EXPECT_THAT(full.body, HasSubstr("20 of the 20 bytes"));
  EXPECT_THAT(Bring(bob_, "x").status, IsTaken());
}

TEST_F(ProjectLimitsTest, JobsStopAtThoseThatWaitAndThoseOfADay) {
  const std::string model(kModel, 3);
  const std::string first = JobOf(alice_);
  clock_.Advance(absl::Hours(1));
  const std::string second = JobOf(alice_);
  const RestAnswer live = Submit(alice_, model);
  EXPECT_EQ(live.status, 429);
  EXPECT_THAT(live.body, HasSubstr("2 jobs of the project alice"));
  for (const std::string& job : {first, second}) {
    EXPECT_EQ(Client(alice_)
                  .Post(absl::StrCat("/v1/jobs/", job, ":cancel"), "{}")
                  .status,
              200);
  }
  JobOf(alice_);
  const RestAnswer day = Submit(alice_, model);
  EXPECT_EQ(day.status, 429);
  EXPECT_THAT(day.body, HasSubstr("3 jobs within 24 hours"));
  // When the oldest of them is a day old.
  EXPECT_EQ(day.headers.at("retry-after"), absl::StrCat(23 * 3600));
  JobOf(bob_);
  clock_.Advance(absl::Hours(23));
  EXPECT_EQ(Submit(alice_, model).status, 200);
}

TEST_F(ProjectLimitsTest, AProjectMayHaveLimitsOfItsOwnFromOneCallToTheNext) {
  const auto audited = [&] {
    return Client(kOperator)
        .Get("/v1/audit?method=ProjectLimits")
        .json()
        .value("entries", nlohmann::json::array());
  };
  EXPECT_TRUE(audited().empty());
  ProjectLimits own = options_.project_limits;
  own.max_bytes = 5;
  own.max_live_jobs = 1;
  server_->SetProjectLimits({{"alice", own}});
  EXPECT_EQ(Bring(alice_, "ten bytes.").status, 429);
  EXPECT_THAT(Bring(bob_, "ten bytes.").status, IsTaken());
  JobOf(alice_);
  EXPECT_EQ(Submit(alice_, std::string(kModel, 3)).status, 429);
  server_->SetProjectLimits({});
  EXPECT_THAT(Bring(alice_, "ten bytes.").status, IsTaken());
  JobOf(alice_);
  const nlohmann::json entries = audited();
  ASSERT_EQ(entries.size(), 2u) << entries;
  EXPECT_EQ(entries[1]["actor"], "operator");
  EXPECT_EQ(entries[1]["subject"], "alice");
  EXPECT_THAT(std::string(entries[1]["message"]),
              HasSubstr("max_bytes=5 max_live_jobs=1"));
}

class ProjectBlobsTest : public ProjectLimitsTest {
 protected:
  void SetUp() override {
    ProjectLimitsTest::SetUp();
    worker_ = MakeToken("", R"("WORK")").json()["secret"];
  }
  // A worker does the one job that waits, and makes 9 bytes of it.
  void DoJob() {
    v1::SynchronizeRequest call = WorkerCall();
    const v1::SynchronizeResponse leased = SynchronizeAsWorker(call);
    ASSERT_EQ(leased.new_tasks_size(), 1);
    ASSERT_THAT(Bring(worker_, "optimized").status, IsTaken());
    v1::HeldTask& held = *call.add_held();
    held.set_task_id(leased.new_tasks(0).task_id());
    held.set_attempt(leased.new_tasks(0).attempt());
    v1::Report& report = *held.mutable_completion()->mutable_report();
    report.set_passed(true);
    report.mutable_optimized_model()->set_sha256(Sha256Hex("optimized"));
    report.mutable_optimized_model()->set_size_bytes(9);
    v1::Artifact& artifact = *report.add_artifacts();
    artifact.set_name("optimized.pb");
    *artifact.mutable_digest() = report.optimized_model();
    call.set_free_slots(0);
    EXPECT_EQ(SynchronizeAsWorker(call).verdicts(0).verdict(),
              v1::TaskVerdict::COMPLETION_ACCEPTED);
  }
  v1::SynchronizeResponse SynchronizeAsWorker(
      const v1::SynchronizeRequest& call) {
    Context context;
    context.AddMetadata("authorization", "Bearer " + worker_);
    v1::SynchronizeResponse response;
    EXPECT_TRUE(work_->Synchronize(&context, call, &response).ok());
    return response;
  }
  RestAnswer Remove(const std::string& token, const std::string& bytes,
                    const std::string& more = "") {
    return Client(token).Post(
        "/v1/blobs:remove",
        absl::StrCat(R"({"sha256":[")", Sha256Hex(bytes), R"("])", more, "}"));
  }
  std::string Removed(const std::string& token, const std::string& bytes) {
    const RestAnswer answer = Remove(token, bytes);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["removals"][0]["outcome"];
  }

  const std::string model_ = std::string(kModel, 3);
  std::string worker_;
};

TEST_F(ProjectBlobsTest, ListTellsWhatCountsAndWhatItIsFor) {
  const std::string job = JobOf(alice_);
  DoJob();
  const nlohmann::json all = Client(alice_).Get("/v1/blobs").json();
  EXPECT_EQ(all["project"], "alice");
  EXPECT_EQ(all["total_bytes"], "12");
  EXPECT_EQ(all["max_bytes"], "20");
  ASSERT_EQ(all["blobs"].size(), 2u) << all;
  const nlohmann::json& made = all["blobs"][0];
  EXPECT_EQ(made["digest"]["sha256"], Sha256Hex("optimized"));
  EXPECT_EQ(made["uses"][0]["kind"], "ARTIFACT");
  EXPECT_EQ(made["uses"][0]["name"], "optimized.pb");
  EXPECT_EQ(made["uses"][0]["job_id"], job);
  EXPECT_EQ(all["blobs"][1]["uses"][0]["kind"], "MODEL");
  EXPECT_EQ(all["blobs"][1]["uses"][0]["name"], "m.pb");
  // Page by page.
  const auto first = Client(alice_).Get("/v1/blobs?page_size=1").json();
  const auto second =
      Client(alice_)
          .Get(absl::StrCat("/v1/blobs?page_token=",
                            first["next_page_token"].get<std::string>()))
          .json();
  ASSERT_EQ(second["blobs"].size(), 1u);
  EXPECT_EQ(second["blobs"][0]["digest"]["sha256"], Sha256Hex(model_));
  for (const char* bad : {"x", "9-", "9-xyz", "x-y-z"}) {
    const RestAnswer answer =
        Client(alice_).Get(absl::StrCat("/v1/blobs?page_token=", bad));
    EXPECT_EQ(answer.status, 400) << bad;
    EXPECT_THAT(answer.body, HasSubstr("next_page_token"));
  }
}

TEST_F(ProjectBlobsTest, NobodySeesOrRemovesWhatIsAnotherProjects) {
  JobOf(alice_);
  DoJob();
  EXPECT_EQ(Client(bob_).Get("/v1/blobs").json()["blobs"].size(), 0u);
  EXPECT_EQ(Client(bob_).Get("/v1/blobs?project=alice").status, 403);
  EXPECT_EQ(Remove(bob_, "optimized", R"(,"project":"alice")").status, 403);
  EXPECT_EQ(Removed(bob_, "optimized"), "NOT_THERE");
  EXPECT_EQ(Client(alice_).Get(PathOf("optimized")).body, "optimized");
  // Administrators do both.
  EXPECT_EQ(
      Client(kOperator).Get("/v1/blobs?project=alice").json()["blobs"].size(),
      2u);
  const RestAnswer removed =
      Remove(kOperator, "optimized", R"(,"project":"alice")");
  EXPECT_EQ(removed.json()["removals"][0]["outcome"], "REMOVED");
  const std::string reader = MakeToken("alice", R"("READ")").json()["secret"];
  EXPECT_EQ(Remove(reader, model_).status, 403);
  const auto entries = Client(kOperator)
                           .Get("/v1/audit?method=ModelService.RemoveBlobs")
                           .json()["entries"];
  ASSERT_GE(entries.size(), 2u);
  EXPECT_EQ(entries[1]["actor"], "operator");
  EXPECT_EQ(entries[1]["subject"], "alice: " + Sha256Hex("optimized"));
}

TEST_F(ProjectBlobsTest, WhatJobsMadeCountsAndIsGivenBack) {
  JobOf(alice_);
  EXPECT_EQ(Removed(alice_, model_), "NEEDED");
  EXPECT_THAT(Bring(alice_, "ten bytes.").status, IsTaken());
  DoJob();
  // The job was accepted, so that what it made is kept: 22 of 20 bytes.
  const RestAnswer refused = Submit(alice_, model_);
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("22 bytes and may have 20"));
  EXPECT_EQ(Bring(alice_, "x").status, 429);
  const RestAnswer removed = Remove(alice_, "optimized");
  EXPECT_EQ(removed.json()["given_back_bytes"], "9") << removed.body;
  EXPECT_EQ(removed.json()["total_bytes"], "13");
  EXPECT_EQ(Client(alice_).Get(PathOf("optimized")).status, 404);
  EXPECT_EQ(Removed(alice_, "optimized"), "NOT_THERE");
  EXPECT_THAT(Bring(alice_, "x").status, IsTaken());
  EXPECT_EQ(Submit(alice_, model_).status, 200);
}

TEST_F(ProjectBlobsTest, BytesGoWhenNobodyHasThemAndNobodyUsedThemLately) {
  ASSERT_THAT(Bring(alice_, "ten bytes.").status, IsTaken());
  ASSERT_THAT(Bring(bob_, "ten bytes.").status, IsTaken());
  ASSERT_THAT(Bring(alice_, "another.").status, IsTaken());
  const auto stored = [&] {
    return Client(kOperator).Get("/v1/store").json().value("blobs", "0");
  };
  EXPECT_EQ(stored(), "2");
  // Somebody may have been told within the hour that it is here.
  EXPECT_EQ(Remove(alice_, "another.").json().value("freed_bytes", "0"), "0");
  EXPECT_EQ(stored(), "2");
  clock_.Advance(absl::Hours(2));
  EXPECT_EQ(Remove(alice_, "ten bytes.").json().value("freed_bytes", "0"), "0");
  EXPECT_EQ(Remove(bob_, "ten bytes.").json().value("freed_bytes", "0"), "10");
  // The other one by itself.
  server_->Wake();
  for (int i = 0; i < 1000 && stored() != "0"; ++i) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(stored(), "0");
}

TEST_F(ProjectBlobsTest, WhatAListCannotBeIsRefusedBeforeAnythingGoes) {
  ASSERT_THAT(Bring(alice_, "ten bytes.").status, IsTaken());
  RestClient alice = Client(alice_);
  EXPECT_EQ(alice.Post("/v1/blobs:remove", "{}").status, 400);
  const RestAnswer bad = alice.Post(
      "/v1/blobs:remove",
      absl::StrCat(R"({"sha256":[")", Sha256Hex("ten bytes."), R"(","ab"]})"));
  EXPECT_EQ(bad.status, 400);
  EXPECT_THAT(bad.body, HasSubstr("64 lower-case"));
  EXPECT_EQ(alice.Get("/v1/blobs").json()["blobs"].size(), 1u);
}

class ProjectRateTest : public ProjectsTest {
 protected:
  void SetUp() override {
    options_.project_limits.calls_per_second = 0.5;
    options_.project_limits.call_burst = 3;
    ProjectsTest::SetUp();
  }
};

TEST_F(ProjectRateTest, CallsOfAllTokensOfAProjectAreOneRate) {
  const std::string other = Token("alice");
  EXPECT_EQ(Client(alice_).Get("/v1/jobs").status, 200);
  EXPECT_EQ(Client(other).Get("/v1/jobs").status, 200);
  EXPECT_EQ(Client(alice_).Get("/v1/jobs").status, 200);
  const RestAnswer refused = Client(other).Get("/v1/jobs");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "2");
  EXPECT_EQ(
      CallAs(alice_, "/optfarm.v1.JobService/ListJobs", v1::ListJobsRequest()),
      grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Client(bob_).Get("/v1/jobs").status, 200);
  EXPECT_EQ(Client(kOperator).Get("/v1/jobs").status, 200);
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(Client(alice_).Get("/v1/jobs").status, 200);
  EXPECT_EQ(Client(alice_).Get("/v1/jobs").status, 429);
}

class AuditTest : public ProjectsTest {
 protected:
  nlohmann::json Entries(const std::string& query) {
    const RestAnswer answer =
        Client(kOperator).Get(absl::StrCat("/v1/audit", query));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["entries"];
  }
};

TEST_F(AuditTest, TellsWhoDidWhatFromWhereAndWhatCameOfIt) {
  const std::string job = JobOf(alice_);
  Client(alice_).Get(absl::StrCat("/v1/jobs/", job));
  const nlohmann::json entries = Entries("?project=alice");
  ASSERT_EQ(entries.size(), 2u) << entries;
  EXPECT_EQ(entries[0]["method"], "JobService.SubmitJob");
  EXPECT_EQ(entries[0]["subject"], job);
  EXPECT_EQ(entries[0]["actor"], "of-alice");
  EXPECT_EQ(entries[0]["outcome"], "OK");
  EXPECT_THAT(std::string(entries[0]["peer"]), HasSubstr("http:127.0.0.1:"));
  EXPECT_EQ(entries[1]["method"], "ModelService.Upload");
  EXPECT_EQ(entries[1]["subject"], Sha256Hex(std::string(kModel, 3)));
  EXPECT_EQ(Entries("?method=TokenService.CreateToken").size(), 2u);
}

TEST_F(AuditTest, KeepsRefusalsAndCountsAFloodOfThem) {
  EXPECT_EQ(Client("wrong").Get("/v1/jobs").status, 401);
  EXPECT_EQ(Client(alice_).Get("/v1/audit").status, 403);
  nlohmann::json entries = Entries("?page_size=2");
  EXPECT_EQ(entries[0]["outcome"], "PERMISSION_DENIED");
  EXPECT_EQ(entries[0]["actor"], "of-alice");
  EXPECT_EQ(entries[1]["outcome"], "UNAUTHENTICATED");
  EXPECT_EQ(entries[1].value("actor", ""), "");
  for (int i = 0; i < 50; ++i) {
    CallAs("wrong", "/optfarm.v1.JobService/ListJobs", v1::ListJobsRequest());
  }
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Client("wrong").Get("/v1/jobs").status, 401);
  entries = Entries("?page_size=2");
  EXPECT_THAT(std::string(entries[1]["message"]),
              HasSubstr("32 more calls were refused"));
}

// Whoever calls over gRPC may send the metadata that the HTTP door sends.
TEST_F(AuditTest, BelievesNoForgedAddress) {
  Context context;
  context.AddMetadata("authorization", "Bearer " + alice_);
  context.AddMetadata("optfarm-peer", "http:192.0.2.1:1");
  v1::CancelJobRequest request;
  request.set_job_id("none");
  v1::Job job;
  EXPECT_EQ(jobs_->CancelJob(&context, request, &job).error_code(),
            grpc::NOT_FOUND);
  const nlohmann::json entries = Entries("?method=JobService.CancelJob");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0]["outcome"], "NOT_FOUND");
  EXPECT_THAT(std::string(entries[0]["peer"]), HasSubstr("127.0.0.1"));
  EXPECT_THAT(std::string(entries[0]["peer"]),
              ::testing::Not(HasSubstr("192.0.2.1")));
}

TEST_F(ProjectsTest, OnlyAdministratorsDeleteTheNamesOfDevices) {
  const std::string agent = MakeToken("", R"("DEVICE")").json()["secret"];
  v1::SynchronizeRequest call = WorkerCall();
  call.set_kind(v1::SynchronizeRequest::AGENT);
  call.set_free_slots(0);
  call.add_devices()->mutable_info()->set_name("pi4");
  Context context;
  context.AddMetadata("authorization", "Bearer " + agent);
  v1::SynchronizeResponse response;
  ASSERT_TRUE(work_->Synchronize(&context, call, &response).ok());
  const std::string path = "/v1/devices/pi4";
  EXPECT_EQ(Client(alice_).Call("DELETE", path, {}, "").status, 403);
  const RestAnswer early = Client(kOperator).Call("DELETE", path, {}, "");
  EXPECT_EQ(early.status, 400);
  EXPECT_THAT(early.body, HasSubstr("its agent worker-1 reported it"));
  clock_.Advance(absl::Minutes(5));
  const RestAnswer deleted = Client(kOperator).Call("DELETE", path, {}, "");
  EXPECT_EQ(deleted.status, 200) << deleted.body;
  EXPECT_EQ(deleted.json()["info"]["name"], "pi4");
  EXPECT_EQ(Client(kOperator).Call("DELETE", path, {}, "").status, 404);
  EXPECT_EQ(Client(alice_).Get("/v1/devices").json()["devices"].size(), 0u);
  const auto entries = Client(kOperator)
                           .Get("/v1/audit?method=DeviceService.DeleteDevice")
                           .json()["entries"];
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[1]["subject"], "pi4");
  EXPECT_EQ(entries[1]["outcome"], "OK");
}

TEST_F(ProjectsTest, AdministratorsSeeWhatEachUsesAndMay) {
  LimitsByProject limits;
  limits["alice"].max_live_jobs = 3;
  server_->SetProjectLimits(limits);
  JobOf(alice_);
  const RestAnswer answer = Client(kOperator).Get("/v1/projects");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto projects = answer.json()["projects"];
  ASSERT_EQ(projects.size(), 2u) << answer.body;
  EXPECT_EQ(projects[0]["name"], "alice");
  EXPECT_EQ(projects[0]["bytes"], "3");
  EXPECT_EQ(projects[0]["live_jobs"], 1);
  EXPECT_EQ(projects[0]["max_live_jobs"], 3);
  EXPECT_EQ(projects[0]["jobs_a_day"], 1);
  EXPECT_EQ(projects[0]["tokens"], 1);
  EXPECT_EQ(projects[0]["own_limits"], true);
  EXPECT_EQ(projects[1]["name"], "bob");
  EXPECT_EQ(projects[1]["live_jobs"], 0);
  // Page by page.
  const auto first = Client(kOperator).Get("/v1/projects?page_size=1").json();
  EXPECT_EQ(first["projects"].size(), 1u);
  const auto second =
      Client(kOperator)
          .Get(absl::StrCat("/v1/projects?page_token=",
                            first["next_page_token"].get<std::string>()))
          .json();
  ASSERT_EQ(second["projects"].size(), 1u);
  EXPECT_EQ(second["projects"][0]["name"], "bob");
  EXPECT_EQ(second["next_page_token"], "");
  for (const char* path : {"/v1/projects", "/v1/store", "/v1/participants"}) {
    EXPECT_EQ(Client(alice_).Get(path).status, 403) << path;
    EXPECT_EQ(Client(kOperator).Get(path).status, 200) << path;
  }
  const auto store = Client(kOperator).Get("/v1/store").json();
  EXPECT_EQ(store["blobs"], "1");
  EXPECT_EQ(store["blob_bytes"], "3");
  EXPECT_EQ(store["database_engine"], "sqlite");
  EXPECT_EQ(store["evicts"], false);
}

TEST_F(ProjectsTest, AListIsFollowedByThoseOfItsProject) {
  auto stub = v1::FarmService::NewStub(channel_);
  const auto follow = [&](Context& context, const std::string& token) {
    context.AddMetadata("authorization", "Bearer " + token);
    auto stream = stub->WatchJobs(&context, {});
    v1::JobListEvent event;
    EXPECT_TRUE(stream->Read(&event));
    EXPECT_TRUE(event.has_ready());
    return stream;
  };
  Context as_alice;
  Context as_operator;
  const auto alice = follow(as_alice, alice_);
  const auto all = follow(as_operator, kOperator);
  JobOf(bob_, "one");
  const std::string job = JobOf(alice_, "two");
  v1::JobListEvent event;
  ASSERT_TRUE(alice->Read(&event));
  // Not bob's, though his came first.
  EXPECT_EQ(event.job().job_id(), job);
  EXPECT_EQ(event.job().state(), v1::QUEUED);
  ASSERT_TRUE(all->Read(&event));
  ASSERT_TRUE(all->Read(&event));
  Client(alice_).Post(absl::StrCat("/v1/jobs/", job, ":cancel"), "{}");
  ASSERT_TRUE(alice->Read(&event));
  EXPECT_EQ(event.job().state(), v1::CANCELLED);
  as_alice.TryCancel();
  as_operator.TryCancel();
}

TEST_F(ProjectsTest, VerdictsAreTheProjectsOwn) {
  const std::string job = JobOf(alice_);
  const std::string path = absl::StrCat("/v1/jobs:verdicts?job_ids=", job);
  EXPECT_EQ(Client(alice_).Get(path).json()["jobs"].size(), 1u);
  EXPECT_EQ(Client(bob_).Get(path).json()["jobs"].size(), 0u);
  EXPECT_EQ(Client(alice_).Get("/v1/jobs:verdicts").status, 400);
}

}  // namespace
}  // namespace optfarm::server
