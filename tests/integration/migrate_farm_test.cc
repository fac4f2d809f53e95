// A farm's history goes from SQLite and a folder to PostgreSQL and a bucket, by
// a program that is killed again and again, and back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "optfarm/v1/results.grpc.pb.h"
#include "optfarm/v1/tokens.grpc.pb.h"
#include "tests/integration/farm.h"
#include "tests/integration/postgres_place.h"
#include "tests/support/s3_server.h"

namespace optfarm::integration {
namespace {

using ::optfarm::testing::ProgramPath;
using ::optfarm::testing::S3Server;
using ::testing::HasSubstr;

class MigrateFarmTest : public PostgresPlace {
 protected:
  void SetUp() override {
    PostgresPlace::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto s3 = S3Server::Shared();
    if (absl::IsFailedPrecondition(s3.status())) {
      GTEST_SKIP() << s3.status().message();
    }
    ASSERT_TRUE(s3.ok()) << s3.status();
    const std::string keys = JoinPath(logs_, "keys");
    ASSERT_TRUE(
        WriteFileAtomically(
            keys, absl::StrCat(
                      "[default]\naws_access_key_id = ", (*s3)->access_key(),
                      "\naws_secret_access_key = ", (*s3)->secret_key(), "\n"))
            .ok());
    bucket_ = absl::StrCat("s3://", S3Server::kBucket, "/migrated");
    s3_flags_ = {"--s3_endpoint=" + (*s3)->endpoint(),
                 "--s3_region=" + (*s3)->region(), "--s3_path_style",
                 "--s3_credentials_file=" + keys};
    uri_ = database_.substr(database_.find('=') + 1);
  }

  std::vector<std::string> Migrate(const std::string& from,
                                   const std::string& to,
                                   const std::vector<std::string>& more) {
    std::vector<std::string> words = {ProgramPath("optctl"), "migrate",
                                      "--from=" + from, "--to=" + to};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> WithS3(std::vector<std::string> flags) {
    flags.insert(flags.end(), s3_flags_.begin(), s3_flags_.end());
    return flags;
  }

  // Begins the command and kills it after the pause; false when it had ended.
  bool BeginAndKill(std::vector<std::string> words, absl::Duration pause) {
    SubprocessOptions options;
    options.argv = std::move(words);
    options.output_file = absl::StrCat(logs_, "/killed", ++runs_);
    auto child = Subprocess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    if (!child.ok() || child->Wait(pause).has_value()) return false;
    // optfarm-server is its child, and dies with it.
    child->Signal(SIGKILL);
    child->Wait(kPatience);
    return true;
  }

  // All that a client is told of the farm, as text.
  static std::string Told(Farm& farm) {
    rpc::ChannelOptions options;
    options.target = farm.address();
    const auto channel = rpc::MakeChannel(options).value();
    std::string told;
    {
      grpc::ClientContext context;
      v1::ListJobsResponse jobs;
      EXPECT_TRUE(
          v1::JobService::NewStub(channel)->ListJobs(&context, {}, &jobs).ok());
      EXPECT_GT(jobs.jobs_size(), 0);
      for (const v1::Job& job : jobs.jobs()) {
        told += farm.Get(job.job_id()).DebugString();
      }
    }
    {
      grpc::ClientContext context;
      v1::QueryResultsRequest request;
      request.set_full(true);
      v1::QueryResultsResponse results;
      EXPECT_TRUE(v1::ResultService::NewStub(channel)
                      ->QueryResults(&context, request, &results)
                      .ok());
      EXPECT_GT(results.results_size(), 0);
      told += results.DebugString();
    }
    grpc::ClientContext context;
    v1::ListTokensResponse tokens;
    EXPECT_TRUE(v1::TokenService::NewStub(channel)
                    ->ListTokens(&context, {}, &tokens)
                    .ok());
    EXPECT_EQ(tokens.tokens_size(), 1);
    return told + tokens.DebugString();
  }

  // The digest of each table, from what the command printed.
  static std::string Digests(const std::string& said) {
    std::string digests;
    for (const absl::string_view line : absl::StrSplit(said, '\n')) {
      const std::vector<std::string> words =
          absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.size() == 4 && words[3].size() == 64) {
        absl::StrAppend(&digests, words[0], " ", words[1], " ", words[3], "\n");
      }
    }
    return digests;
  }

  std::string bucket_;
  std::string uri_;
  std::vector<std::string> s3_flags_;
};

TEST_F(MigrateFarmTest, EverythingIsThereAfterKillsAndOnTheWayBack) {
  std::string told;
  std::string folder;
  v1::Job job;
  {
    Farm farm;
    folder = farm.folder() + "/data";
    const auto worker = farm.StartWorker("worker");
    const auto agent = farm.StartAgent("agent", {"--max_load=1000"});
    v1::JobSpec spec = farm.DigitsJob("int8");
    spec.mutable_benchmark()->add_devices("agent");
    spec.mutable_benchmark()->add_threads(1);
    job = farm.AwaitEnd(farm.Submit(spec));
    ASSERT_EQ(job.state(), v1::SUCCEEDED);
    ASSERT_EQ(Run({ProgramPath("optctl"), "--server=" + farm.address(), "token",
                   "create", "kept", "--scope=read"}),
              0)
        << said_;
    // Nobody is moved while at work.
    EXPECT_NE(Run(Migrate("sqlite:" + folder, uri_, {})), 0);
    EXPECT_THAT(said_, HasSubstr("another optfarm-server uses it"));
    agent->Terminate();
    worker->Terminate();
    told = Told(farm);
    farm.server().Terminate();

    const std::vector<std::string> there =
        Migrate("sqlite:" + folder, uri_, WithS3({"--to_blobs=" + bucket_}));
    // One that was killed keeps the next one waiting for its lease.
    int kills = 0;
    for (const int ms : {300, 2400, 2700, 3100}) {
      if (!BeginAndKill(there, absl::Milliseconds(ms))) break;
      ++kills;
    }
    EXPECT_GT(kills, 0);
    Run(there);
    if (said_.find("is complete") == std::string::npos) {
      // The last of those that were to be killed was through.
      EXPECT_THAT(said_, HasSubstr("has records already"));
    }
  }
  {
    Farm farm(WithS3({"--database=" + uri_, "--blobs=" + bucket_}));
    EXPECT_EQ(Told(farm), told);
    const std::string artifact = farm.Artifact(job, "optimized.pb");
    EXPECT_FALSE(artifact.empty());
    farm.server().Terminate();
  }
  const std::string back = logs_ + "/back";
  ASSERT_EQ(Run(Migrate(uri_, "sqlite:" + back,
                        WithS3({"--from_blobs=" + bucket_,
                                "--to_blobs=file:" + back + "/blobs"}))),
            0)
      << said_;
  const std::string digests = Digests(said_);
  EXPECT_THAT(digests, HasSubstr("measurements "));
  Farm farm({"--data_dir=" + back});
  EXPECT_EQ(Told(farm), told);
  EXPECT_FALSE(farm.Artifact(job, "optimized.pb").empty());
}

TEST_F(MigrateFarmTest, SaysWhatIsWrong) {
  EXPECT_EQ(Run({ProgramPath("optctl"), "migrate"}), 2);
  EXPECT_THAT(said_, HasSubstr("needs both --from and --to"));
  EXPECT_NE(Run(Migrate("sqlite:" + logs_ + "/nothing", uri_, {})), 0);
  EXPECT_THAT(said_, HasSubstr("there is no database"));
  EXPECT_NE(Run(Migrate("sqlite:" + logs_ + "/nothing", "mysql://x", {})), 0);
  EXPECT_THAT(said_, HasSubstr("postgresql://USER@HOST/DATABASE"));
  // Before the target is touched: it is still new.
  EXPECT_NE(Run(Migrate("sqlite:" + logs_ + "/nothing", uri_,
                        {"--from_blobs=s3://a", "--to_blobs=s3://b"})),
            0);
  EXPECT_THAT(said_, HasSubstr("bucket to bucket"));
}

}  // namespace
}  // namespace optfarm::integration
