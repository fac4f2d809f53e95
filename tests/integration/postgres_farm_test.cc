// A farm whose server keeps its records in a real PostgreSQL: killed and
// crashed in the middle of a job, both come back, and the job ends once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "optfarm/v1/results.grpc.pb.h"
#include "tests/integration/farm.h"
#include "tests/integration/postgres_place.h"

namespace optfarm::integration {
namespace {

using ::optfarm::testing::ProgramPath;
using ::optfarm::testing::SourcePath;
using ::testing::HasSubstr;

using PostgresFarmTest = PostgresPlace;

TEST_F(PostgresFarmTest, AJobOutlivesItsServerAndItsDatabase) {
  Farm farm({database_});
  const auto worker = farm.StartWorker("worker");
  const auto agent = farm.StartAgent("agent");
  const std::string server = "--server=" + farm.address();
  ASSERT_EQ(Run({ProgramPath("optctl"), "submit",
                 SourcePath("examples/digits/digits.pb"), server, "--recipe",
                 "fp32", "--device", "agent", "-o", "json"}),
            0)
      << said_;
  rpc::ChannelOptions options;
  options.target = farm.address();
  const auto channel = rpc::MakeChannel(options).value();
  const auto jobs = v1::JobService::NewStub(channel);
  v1::ListJobsResponse list;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(jobs->ListJobs(&context, v1::ListJobsRequest(), &list).ok());
  }
  ASSERT_EQ(list.jobs_size(), 1);
  const std::string job_id = list.jobs(0).job_id();

  // In the middle: the agent measures.
  ASSERT_TRUE(Await([&] {
    const v1::Job job = farm.Get(job_id);
    return std::any_of(
        job.tasks().begin(), job.tasks().end(), [](const v1::Task& task) {
          return task.kind() == v1::BENCHMARK && task.state() == v1::LEASED;
        });
  }));
  farm.server().Kill9();
  ASSERT_EQ(Cluster("crash " + folder_), 0) << said_;
  ASSERT_EQ(Cluster("start " + folder_), 0) << said_;
  farm.StartServer();
  // Now the database alone, under a server that goes on.
  ASSERT_EQ(Cluster("crash " + folder_), 0) << said_;
  ASSERT_EQ(Cluster("start " + folder_), 0) << said_;

  v1::Job job;
  EXPECT_TRUE(Await([&] {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    return jobs->GetJob(&context, request, &job).ok() &&
           job.state() >= v1::SUCCEEDED;
  })) << job.DebugString();
  EXPECT_EQ(job.state(), v1::SUCCEEDED) << job.DebugString();

  // Each variant was measured once, and each result is there once.
  const auto results = v1::ResultService::NewStub(channel);
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
  EXPECT_EQ(Run({ProgramPath("optctl"), "get", job_id, server}), 0) << said_;
  EXPECT_THAT(said_, HasSubstr(job_id));
}

TEST_F(PostgresFarmTest, ASecondServerOnTheDatabaseIsRefused) {
  Farm farm({database_});
  EXPECT_NE(Run({ProgramPath("optfarm-server"),
                 absl::StrCat("--data_dir=", logs_, "/data"),
                 "--grpc=127.0.0.1:0", database_}),
            0);
  EXPECT_THAT(said_, HasSubstr("in use by the server"));
}

}  // namespace
}  // namespace optfarm::integration
