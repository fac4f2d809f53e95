// A server that stands by answers for the results of a job from the database,
// as the leader would, and nobody whom the leader would not answer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "optfarm/v1/jobs.grpc.pb.h"
#include "optfarm/v1/results.grpc.pb.h"
#include "tests/integration/several_servers.h"

namespace optfarm::integration {
namespace {

using ::optfarm::testing::ProgramPath;
using ::optfarm::testing::SourcePath;

class StandbyResultsTest : public SeveralServers {
 protected:
  // Optimizes and measures an example for the project "default".
  void RunAJob() {
    const std::string token = "--token_file=" + JoinPath(logs_, "token");
    StartProgram("worker",
                 {ProgramPath("optfarm-worker"), "--name=worker",
                  absl::StrCat("--work_dir=", logs_, "/worker"), token});
    StartProgram("agent",
                 {ProgramPath("optfarm-agent"), "--name=agent",
                  absl::StrCat("--work_dir=", logs_, "/agent"), token});
    ASSERT_EQ(Run({ProgramPath("optctl"), "submit",
                   SourcePath("examples/digits/digits.pb"), "--recipe=fp32",
                   "--device=agent", "--wait", token, "--server=" + all_}),
              0)
        << said_;
    programs_.clear();
    const auto jobs = v1::JobService::NewStub(ChannelTo(0, kOperator));
    grpc::ClientContext context;
    v1::ListJobsResponse list;
    ASSERT_TRUE(jobs->ListJobs(&context, {}, &list).ok());
    ASSERT_EQ(list.jobs_size(), 1);
    of_job_.set_job_id(list.jobs(0).job_id());
  }

  std::pair<grpc::StatusCode, v1::QueryResultsResponse> Query(
      int server, const std::string& token,
      const v1::QueryResultsRequest& request) {
    const auto results = v1::ResultService::NewStub(ChannelTo(server, token));
    grpc::ClientContext context;
    v1::QueryResultsResponse response;
    const grpc::Status status =
        results->QueryResults(&context, request, &response);
    return {status.error_code(), response};
  }
  grpc::StatusCode Ask(int server, const std::string& token) {
    return Query(server, token, of_job_).first;
  }

  // The leader and another server end a call alike.
  template <typename Request, typename Response>
  void ExpectSame(grpc::Status (v1::ResultService::Stub::*method)(
                      grpc::ClientContext*, const Request&, Response*),
                  const Request& request, grpc::StatusCode code) {
    std::set<std::string> answers;
    for (const int server : {0, 1}) {
      const auto results =
          v1::ResultService::NewStub(ChannelTo(server, kOperator));
      grpc::ClientContext context;
      Response response;
      const grpc::Status status =
          ((*results).*method)(&context, request, &response);
      EXPECT_EQ(status.error_code(), code) << status.error_message();
      answers.insert(absl::StrCat(status.error_message(), " ",
                                  response.SerializeAsString()));
    }
    EXPECT_EQ(answers.size(), 1u);
  }

  v1::QueryResultsRequest of_job_;
};

TEST_F(StandbyResultsTest, AnswersAsTheLeaderDoes) {
  StartAll(SharedFolder());
  RunAJob();
  const auto [code, all] = Query(0, kOperator, of_job_);
  ASSERT_EQ(code, grpc::OK);
  ASSERT_GT(all.results_size(), 1);
  // Soon after its start it may not know the tokens yet.
  EXPECT_TRUE(Await([&] {
    EXPECT_EQ(Query(1, kOperator, of_job_).second.SerializeAsString(),
              all.SerializeAsString());
    return Metric(1, "optfarm_served_calls_total") != "0";
  }));
  v1::QueryResultsRequest full = of_job_;
  full.set_full(true);
  v1::QueryResultsRequest of_device;
  of_device.set_device("agent");
  for (const auto& request : {full, of_device, v1::QueryResultsRequest()}) {
    EXPECT_EQ(Query(1, kOperator, request).second.SerializeAsString(),
              Query(0, kOperator, request).second.SerializeAsString());
  }
  // Page by page, each from another server.
  v1::QueryResultsRequest page = of_job_;
  page.set_page_size(1);
  std::set<int64_t> seen;
  for (int i = 0; i <= all.results_size(); ++i) {
    const auto [page_code, one] = Query(i % 3, kOperator, page);
    ASSERT_EQ(page_code, grpc::OK);
    for (const v1::Result& result : one.results()) {
      EXPECT_TRUE(seen.insert(result.result_id()).second);
    }
    page.set_page_token(one.next_page_token());
    if (page.page_token().empty()) break;
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(all.results_size()));
  page.set_page_token("nonsense");
  EXPECT_EQ(Query(1, kOperator, page).first, grpc::INVALID_ARGUMENT);
  // What is asked of the numbers in memory.
  v1::ListHistoryRequest history;
  history.mutable_filter()->set_device("agent");
  ExpectSame(&v1::ResultService::Stub::ListHistory, history, grpc::OK);
  ExpectSame(&v1::ResultService::Stub::FindRegressions,
             v1::FindRegressionsRequest(), grpc::OK);
  v1::CompareResultsRequest comparison;
  comparison.mutable_a()->set_job_id(of_job_.job_id());
  comparison.mutable_b()->set_job_id(of_job_.job_id());
  ExpectSame(&v1::ResultService::Stub::CompareResults, comparison, grpc::OK);
  comparison.mutable_b()->set_job_id("nothing");
  ExpectSame(&v1::ResultService::Stub::CompareResults, comparison,
             grpc::NOT_FOUND);
}

TEST_F(StandbyResultsTest, OnlyThoseWhomTheLeaderAnswersAreAnswered) {
  std::vector<std::string> flags = SharedFolder();
  flags.insert(flags.end(),
               {"--project_calls_per_second=0.001", "--project_call_burst=5"});
  StartAll(flags);
  RunAJob();
  const auto [mine, my_id] = MakeToken("default", {v1::Access::READ});
  const auto [other, other_id] = MakeToken("other", {v1::Access::READ});
  const auto [submits, submits_id] = MakeToken("default", {v1::Access::SUBMIT});
  for (const int server : {0, 1}) {
    EXPECT_GT(Query(server, mine, of_job_).second.results_size(), 0);
    const auto [code, none] = Query(server, other, of_job_);
    EXPECT_EQ(code, grpc::OK);
    EXPECT_EQ(none.results_size(), 0);
    EXPECT_EQ(Ask(server, submits), grpc::PERMISSION_DENIED);
    EXPECT_EQ(Ask(server, ""), grpc::UNAUTHENTICATED);
    EXPECT_EQ(Ask(server, "wrong"), grpc::UNAUTHENTICATED);
  }
  // Each server has the limit once, and no more than that.
  int more = 0;
  for (const int server : {1, 2, 0}) {
    while (Ask(server, mine) == grpc::OK) ASSERT_LT(++more, 15);
  }
  for (const int server : {0, 1, 2}) {
    EXPECT_EQ(Ask(server, mine), grpc::RESOURCE_EXHAUSTED);
  }
  // Known on all servers within a second, whichever was told.
  Revoke(2, other_id);
  for (const int server : {0, 1, 2}) {
    EXPECT_TRUE(
        Await([&] { return Ask(server, other) == grpc::UNAUTHENTICATED; }));
  }
}

TEST_F(StandbyResultsTest, NeedsTheDatabaseAndNoLeader) {
  StartAll(SharedFolder());
  RunAJob();
  const auto [mine, my_id] = MakeToken("default", {v1::Access::READ});
  EXPECT_EQ(Ask(1, mine), grpc::OK);
  servers_[0]->Kill9();
  gone_.push_back(0);
  EXPECT_TRUE(Await([&] { return Ask(1, mine) == grpc::OK; }));
  EXPECT_GT(AwaitLeader(), 0);
  ASSERT_EQ(Cluster("crash " + folder_), 0) << said_;
  EXPECT_TRUE(Await([&] { return Ask(1, mine) == grpc::UNAVAILABLE; }));
  ASSERT_EQ(Cluster("start " + folder_), 0) << said_;
  EXPECT_TRUE(Await(
      [&] { return Ask(1, mine) == grpc::OK && Ask(2, mine) == grpc::OK; }));
}

}  // namespace
}  // namespace optfarm::integration
