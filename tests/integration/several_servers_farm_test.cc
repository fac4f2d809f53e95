// Three servers on one PostgreSQL and one store of files, as real processes:
// any of them answers any call, and whatever becomes of the one that leads,
// another takes its place and the job ends once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "optfarm/v1/jobs.grpc.pb.h"
#include "optfarm/v1/results.grpc.pb.h"
#include "optfarm/v1/servers.grpc.pb.h"
#include "optfarm/v1/tokens.grpc.pb.h"
#include "tests/integration/several_servers.h"

namespace optfarm::integration {
namespace {

using ::optfarm::testing::ProgramPath;
using ::optfarm::testing::SourcePath;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class SeveralServersFarmTest : public SeveralServers {
 protected:
  // What the server says of itself, and how its call ended.
  std::pair<grpc::StatusCode, v1::ServerState> AskServer(
      int number, const std::string& token) {
    const auto servers = v1::ServerService::NewStub(ChannelTo(number, token));
    grpc::ClientContext context;
    v1::ServerState state;
    const grpc::Status status = servers->GetServer(&context, {}, &state);
    return {status.error_code(), state};
  }

  v1::Job OnlyJob(int server) {
    const auto jobs = v1::JobService::NewStub(ChannelTo(server));
    grpc::ClientContext context;
    v1::ListJobsResponse list;
    const grpc::Status status =
        jobs->ListJobs(&context, v1::ListJobsRequest(), &list);
    return status.ok() && list.jobs_size() == 1 ? list.jobs(0) : v1::Job();
  }

  // Without the failures of calls in between.
  bool AgentIsMeasuring(int server) {
    const v1::Job listed = OnlyJob(server);
    if (listed.job_id().empty()) return false;
    const auto jobs = v1::JobService::NewStub(ChannelTo(server));
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id(listed.job_id());
    v1::Job job;
    if (!jobs->GetJob(&context, request, &job).ok()) return false;
    return std::any_of(
        job.tasks().begin(), job.tasks().end(), [](const v1::Task& task) {
          return task.kind() == v1::BENCHMARK && task.state() == v1::LEASED;
        });
  }

  // Each variant was measured once, and each result is there once.
  void ExpectMeasuredOnce(int server, const std::string& job_id) {
    const auto results = v1::ResultService::NewStub(ChannelTo(server));
    grpc::ClientContext context;
    v1::QueryResultsRequest request;
    request.set_job_id(job_id);
    v1::QueryResultsResponse found;
    ASSERT_TRUE(results->QueryResults(&context, request, &found).ok());
    EXPECT_GT(found.results_size(), 0);
    std::vector<std::string> measured;
    for (const v1::Result& result : found.results()) {
      const v1::Measurement& m = result.measurement();
      measured.push_back(
          absl::StrCat(m.device(), "/", m.variant(), "/", m.threads()));
    }
    std::sort(measured.begin(), measured.end());
    EXPECT_EQ(std::adjacent_find(measured.begin(), measured.end()),
              measured.end());
  }
};

TEST_F(SeveralServersFarmTest, AJobOutlivesItsLeader) {
  StartServers(BucketOrFolder());
  StartParticipants();
  const int first = Leader();
  ASSERT_EQ(first, 0);
  Program& submit = StartProgram(
      "submit",
      {ProgramPath("optctl"), "submit", SourcePath("examples/digits/digits.pb"),
       "--recipe=fp32", "--device=agent", "--wait"},
      /*await_ready=*/false);
  ASSERT_TRUE(Await([&] { return AgentIsMeasuring(1); }));
  servers_[first]->Kill9();
  gone_.push_back(first);
  const absl::Time killed = absl::Now();
  ASSERT_TRUE(Await([&] { return !OnlyJob(1).job_id().empty(); }));
  // Ten, and the machine may be busy.
  EXPECT_LT(absl::Now() - killed, absl::Seconds(15));
  const int second = AwaitLeader();
  ASSERT_GT(second, 0);

  ASSERT_TRUE(Await([&] { return submit.LogHas(": SUCCEEDED"); }));
  const v1::Job job = OnlyJob(2);
  EXPECT_EQ(job.state(), v1::SUCCEEDED);
  ExpectMeasuredOnce(1, job.job_id());
  // What was killed comes back and stands by.
  gone_.clear();
  StartServer(first, BucketOrFolder());
  EXPECT_EQ(Leader(), second);
  EXPECT_EQ(OnlyJob(first).job_id(), job.job_id());
  // A leader that is asked to end hands over at once.
  const absl::Time asked = absl::Now();
  servers_[second]->Terminate();
  gone_.push_back(second);
  AwaitLeader();
  EXPECT_LT(absl::Now() - asked, absl::Seconds(15));
  EXPECT_TRUE(Await([&] { return OnlyJob(first).job_id() == job.job_id(); }));
}

TEST_F(SeveralServersFarmTest, APausedLeaderComesBackAndStandsBy) {
  StartServers(SharedFolder());
  StartParticipants();
  ASSERT_EQ(Leader(), 0);
  ::kill(servers_[0]->pid(), SIGSTOP);
  gone_.push_back(0);
  const int second = AwaitLeader();
  ASSERT_GT(second, 0);
  // The next writes.
  ASSERT_EQ(Run({ProgramPath("optctl"), "submit",
                 SourcePath("examples/digits/digits.pb"), "--recipe=fp32",
                 "--device=agent", "--server=" + addresses_[second]}),
            0)
      << said_;
  const std::string job_id = OnlyJob(second).job_id();
  ASSERT_NE(job_id, "");
  ::kill(servers_[0]->pid(), SIGCONT);
  EXPECT_TRUE(Await([&] {
    return servers_[0]->LogHas("leads no longer: another server has taken") &&
           OnlyJob(0).job_id() == job_id;
  }));
  EXPECT_EQ(Leader(), second);
  // Workers and agents have gone on to a server that answers.
  EXPECT_TRUE(Await([&] { return OnlyJob(0).state() >= v1::SUCCEEDED; }));
  EXPECT_EQ(OnlyJob(0).state(), v1::SUCCEEDED);
  ExpectMeasuredOnce(0, job_id);
}

TEST_F(SeveralServersFarmTest, AServerThatStandsByAnswersEveryCall) {
  const std::string token_file = JoinPath(logs_, "token");
  ASSERT_TRUE(WriteFileAtomically(token_file, "secret-of-all\n").ok());
  std::vector<std::string> flags = SharedFolder();
  flags.push_back("--token_file=" + token_file);
  StartServers(flags);
  ASSERT_EQ(Leader(), 0);
  const auto channel = ChannelTo(1, "secret-of-all");
  // A stream of requests, and one of answers.
  const auto models = v1::ModelService::NewStub(channel);
  const std::string file = JoinPath(logs_, "file");
  std::string bytes(5'000'000, 'x');
  for (size_t i = 0; i < bytes.size(); i += 97) bytes[i] = char(i % 251);
  ASSERT_TRUE(WriteFileAtomically(file, bytes).ok());
  const auto digest = rpc::UploadFile(models.get(), file);
  ASSERT_TRUE(digest.ok()) << digest.status();
  const std::string copy = JoinPath(logs_, "copy");
  ASSERT_TRUE(rpc::DownloadBlob(models.get(), *digest, copy).ok());
  EXPECT_TRUE(ReadFile(copy).value_or("") == bytes);
  {  // What the leader refuses, with its words.
    const auto jobs = v1::JobService::NewStub(channel);
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id("nothing");
    v1::Job job;
    const grpc::Status status = jobs->GetJob(&context, request, &job);
    EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
    EXPECT_THAT(status.error_message(), HasSubstr("nothing"));
  }
  for (const char* token : {"", "wrong"}) {
    const auto tokens = v1::TokenService::NewStub(ChannelTo(1, token));
    grpc::ClientContext context;
    v1::WhoAmIResponse who;
    EXPECT_EQ(tokens->WhoAmI(&context, {}, &who).error_code(),
              grpc::UNAUTHENTICATED);
    EXPECT_EQ(AskServer(1, token).first, grpc::UNAUTHENTICATED);
  }
  // What is answered here, for tokens that only the leader knows too.
  const auto [code, state] = AskServer(1, "secret-of-all");
  EXPECT_EQ(code, grpc::OK);
  EXPECT_FALSE(state.leads());
  EXPECT_EQ(state.leader_address(), addresses_[0]);
  for (const v1::Access::Scope scope : {v1::Access::READ, v1::Access::WORK}) {
    const auto tokens = v1::TokenService::NewStub(channel);
    grpc::ClientContext context;
    v1::CreateTokenRequest request;
    request.set_name("one");
    request.add_scopes(scope);
    v1::CreateTokenResponse made;
    ASSERT_TRUE(tokens->CreateToken(&context, request, &made).ok());
    EXPECT_EQ(AskServer(1, made.secret()).first,
              scope == v1::Access::READ ? grpc::OK : grpc::PERMISSION_DENIED);
  }
  // Over HTTP, and what is answered here.
  const std::string bearer = "Authorization: Bearer secret-of-all";
  const auto get = [&](const std::string& path, const std::string& header) {
    return Get(1, path, {header});
  };
  EXPECT_THAT(get("/livez", "X: y"), HasSubstr("alive"));
  EXPECT_THAT(get("/readyz", "X: y"), HasSubstr("ready"));
  EXPECT_THAT(get("/metrics", bearer), HasSubstr("optfarm_leads 0"));
  EXPECT_THAT(get("/metrics", "X: y"), HasSubstr("UNAUTHENTICATED"));
  EXPECT_THAT(get("/v1/jobs", bearer), HasSubstr("\"jobs\":[]"));
  EXPECT_THAT(get("/v1/jobs", "X: y"), HasSubstr("UNAUTHENTICATED"));
  EXPECT_THAT(get("/v1/audit", bearer), HasSubstr("127.0.0.1"));
}

TEST_F(SeveralServersFarmTest, DoctorAsksEachServer) {
  StartServers(BucketOrFolder());
  StartParticipants();
  ASSERT_EQ(AwaitLeader(), 0);
  const std::vector<std::string> doctor = {ProgramPath("optctl"), "doctor",
                                           "--server=" + all_};
  // A busy machine is no reason to fail: those are remarks.
  EXPECT_EQ(Run(doctor), 0) << said_;
  const auto line = [](const std::string& what, const std::string& text) {
    return ContainsRegex(absl::StrCat("(^|\n)", what, " +", text));
  };
  for (int i = 0; i < kServers; ++i) {
    const std::string server = "server " + addresses_[i];
    EXPECT_THAT(said_,
                line(server, i == 0 ? "ok +leads, term 1" : "ok +stands by"));
    EXPECT_THAT(said_, line(server + " clock", "ok "));
    EXPECT_THAT(said_, line(server + " schema", "ok +the database's step "));
    EXPECT_THAT(said_, line(server + " database",
                            "(ok|look) +postgresql answers in [0-9.]+ ms"));
    EXPECT_THAT(said_, line(server + " files",
                            "(ok|look) +(s3|folder) answers in [0-9.]+ ms"));
  }
  EXPECT_THAT(said_, line("leader", "ok +" + addresses_[0]));
  // One that is gone is named, and the others are asked all the same.
  servers_[2]->Kill9();
  EXPECT_EQ(Run(doctor), 1);
  EXPECT_THAT(said_, line("server " + addresses_[2], "WRONG +cannot reach"));
  EXPECT_THAT(said_, line("server " + addresses_[1], "ok +stands by"));
  // Without a database nobody leads.
  ASSERT_EQ(Cluster("crash " + folder_), 0) << said_;
  // What a server found is given again for a second.
  const std::string wrong = "server " + addresses_[1] + " database +WRONG";
  EXPECT_TRUE(Await([&] {
    return Run(doctor) == 1 && ::testing::Matches(ContainsRegex(wrong))(said_);
  })) << said_;
  ASSERT_EQ(Cluster("start " + folder_), 0) << said_;
  const std::string good = "server " + addresses_[1] + " database +(ok|look)";
  EXPECT_TRUE(Await([&] {
    Run(doctor);
    return ::testing::Matches(ContainsRegex(good))(said_);
  })) << said_;
}

TEST_F(SeveralServersFarmTest, WhatDoesNotGoWithSeveralServersIsRefused) {
  const std::vector<std::string> server = {
      ProgramPath("optfarm-server"),
      absl::StrCat("--data_dir=", logs_, "/data"), "--grpc=127.0.0.1:0"};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = server;
    command.insert(command.end(), more.begin(), more.end());
    return Run(command);
  };
  EXPECT_EQ(run({"--advertise=127.0.0.1:7", "--blobs=file:" + logs_}), 1);
  EXPECT_THAT(said_, HasSubstr("--database=postgresql"));
  EXPECT_EQ(run({"--advertise=127.0.0.1:7", database_}), 1);
  EXPECT_THAT(said_, HasSubstr("files that all of them see"));
  EXPECT_EQ(run({"--advertise=nonsense", database_}), 1);
  EXPECT_THAT(said_, HasSubstr("nonsense"));
}

}  // namespace
}  // namespace optfarm::integration
