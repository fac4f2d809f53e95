// A lease from blobs to verdict, with a child that is a shell command: what is
// uploaded, what is left out, and what a refused completion leads to.

#include "rpc/task_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/sandbox.h"
#include "rpc/held_tasks.h"
#include "tests/rpc/fake_model_service.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::rpc {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::HasSubstr;

class TaskRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.work_folder = testing::FreshFolder();
    options_.finish = [](const v1::LeasedTask&,
                         const std::vector<v1::Artifact>& artifacts,
                         v1::Completion* completion) {
      auto* report = completion->mutable_report();
      report->clear_artifacts();
      report->mutable_artifacts()->Add(artifacts.begin(), artifacts.end());
      return absl::OkStatus();
    };
    // The outcome that the child copies to where a real one writes it.
    v1::Completion good;
    good.mutable_report()->set_passed(true);
    outcome_ = Store(good.SerializeAsString());
    model_ = Store("the model");
  }

  v1::Digest Store(const std::string& bytes) {
    const v1::Digest digest = DigestOfBytes(bytes);
    service_.blobs[digest.sha256()] = bytes;
    return digest;
  }

  // Works on one lease with `command` as the child.
  std::shared_ptr<HeldTask> Start(const std::string& command) {
    options_.plan = [=, this](const v1::LeasedTask&, const TaskFolder&) {
      TaskPlan plan;
      plan.inputs = {{outcome_, "outcome"}, {model_, "model/net.pb"}};
      plan.argv = {"/bin/sh", "-c", command};
      plan.limits.max_folder_bytes = folder_bytes_;
      return plan;
    };
    auto runner = TaskRunner::Create(stub_.get(), options_);
    EXPECT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
    v1::SynchronizeResponse response;
    response.add_new_tasks()->set_task_id("job-1");
    const auto task = tasks_.Apply({}, response)[0];
    runner_->Start(task);
    return task;
  }

  // Blocks until the task has an outcome, and answers it.
  v1::Completion Answer(v1::TaskVerdict::Verdict verdict) {
    v1::SynchronizeRequest request;
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    do {
      absl::SleepFor(absl::Milliseconds(1));
      tasks_.Fill(&request);
    } while (!request.held(0).has_completion() && absl::Now() < deadline);
    v1::SynchronizeResponse response;
    v1::TaskVerdict& told = *response.add_verdicts();
    told.set_task_id("job-1");
    told.set_verdict(verdict);
    if (verdict == v1::TaskVerdict::COMPLETION_REFUSED) {
      *told.add_missing_blobs() = model_;
    }
    tasks_.Apply(request, response);
    return request.held(0).completion();
  }

  std::string Uploaded(const v1::Digest& digest) {
    return service_.blobs[digest.sha256()];
  }

  FakeModelService service_;
  LocalServer server_{&service_};
  std::unique_ptr<v1::ModelService::Stub> stub_ =
      v1::ModelService::NewStub(server_.channel());
  TaskRunnerOptions options_;
  v1::Digest outcome_;
  v1::Digest model_;
  uint64_t folder_bytes_ = 0;
  HeldTasks tasks_{nullptr};
  std::unique_ptr<TaskRunner> runner_;
};

TEST_F(TaskRunnerTest, BringsBlobsInAndArtifactsOut) {
  Start(
      "echo hello; cp in/model/net.pb out/copy.pb; ln -s /etc/passwd "
      "out/link.txt; touch 'out/odd name'; cp in/outcome state/result.pb");
  const v1::Completion completion =
      Answer(v1::TaskVerdict::COMPLETION_ACCEPTED);
  runner_ = nullptr;
  // Links could lead anywhere and odd names are no artifacts.
  ASSERT_EQ(completion.report().artifacts_size(), 1)
      << completion.DebugString();
  EXPECT_EQ(completion.report().artifacts(0).name(), "copy.pb");
  EXPECT_EQ(Uploaded(completion.report().artifacts(0).digest()), "the model");
  ASSERT_EQ(completion.artifacts_size(), 1);
  EXPECT_EQ(completion.artifacts(0).name(), "task.log");
  EXPECT_EQ(Uploaded(completion.artifacts(0).digest()), "hello\n");
  // Nothing is left of the task's folder.
  EXPECT_TRUE(
      ListFolder(JoinPath(options_.work_folder, "tasks")).value().empty());
}

// With every right that its user has, and without the list of system calls.
TEST_F(TaskRunnerTest, ATaskCannotSpoilWhatOthersAreGiven) {
  const bool namespaces = ProbeSandbox().namespaces;
  for (const Placing placing : {Placing::kCopy, Placing::kLink}) {
    // Links are for where there are namespaces.
    if (placing == Placing::kLink && !namespaces) continue;
    options_.placing = placing;
    Start(
        "for spoil in 'chmod 777' 'truncate -s 0' 'touch' 'rm -f'; do "
        "$spoil in/model/net.pb && echo $spoil; done; "
        "cp in/outcome state/result.pb");
    Answer(v1::TaskVerdict::COMPLETION_ACCEPTED);
    runner_ = nullptr;
    const std::string cached =
        absl::StrCat(options_.work_folder, "/cache/", model_.sha256());
    EXPECT_EQ(ReadFile(cached).value_or(""), "the model");
    struct stat info = {};
    ASSERT_EQ(::stat(cached.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0400u);
  }
}

TEST_F(TaskRunnerTest, CopiesOfInputsAreBounded) {
  options_.placing = Placing::kCopy;
  folder_bytes_ = 5;
  Start("cp in/outcome state/result.pb");
  const v1::Completion completion =
      Answer(v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(completion.failure().kind(), v1::Failure::USER);
  EXPECT_THAT(completion.failure().message(), HasSubstr("--max_folder_mb"));
}

TEST_F(TaskRunnerTest, FinishedFilesWaitUntilTheServerHasRoom) {
  service_.full_uploads = 5;
  options_.transfer.retry.backoff.longest = absl::Milliseconds(1);
  options_.transfer.retry.backoff.first = absl::Milliseconds(1);
  Start("cp in/model/net.pb out/copy.pb; cp in/outcome state/result.pb");
  const v1::Completion completion =
      Answer(v1::TaskVerdict::COMPLETION_ACCEPTED);
  runner_ = nullptr;
  EXPECT_FALSE(completion.has_failure()) << completion.DebugString();
  ASSERT_EQ(completion.report().artifacts_size(), 1);
  EXPECT_EQ(Uploaded(completion.report().artifacts(0).digest()), "the model");
  EXPECT_EQ(service_.full_uploads, 0);
}

TEST_F(TaskRunnerTest, MissingBlobsAreUploadedAgain) {
  Start("echo result > out/a.txt; cp in/outcome state/result.pb");
  const v1::Completion first = Answer(v1::TaskVerdict::COMPLETION_REFUSED);
  const v1::Completion again = Answer(v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
}

TEST_F(TaskRunnerTest, ABlobThatTheServerLacksIsAnInternalFailure) {
  service_.blobs.erase(model_.sha256());
  Start("cp in/outcome state/result.pb");
  const v1::Completion completion =
      Answer(v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_EQ(completion.failure().kind(), v1::Failure::INTERNAL);
  EXPECT_THAT(completion.failure().message(), HasSubstr("model/net.pb"));
}

// Waiting for the child would take longer than any test may.
TEST_F(TaskRunnerTest, ADroppedTaskIsGivenUp) {
  const auto task = Start("sleep 1000");
  task->Drop();
  runner_ = nullptr;
  EXPECT_TRUE(
      ListFolder(JoinPath(options_.work_folder, "tasks")).value().empty());
}

TEST_F(TaskRunnerTest, AWorkFolderBelongsToOneProcess) {
  const auto first = TaskRunner::Create(stub_.get(), options_);
  OPTFARM_ASSERT_OK(first);
  EXPECT_THAT(
      TaskRunner::Create(stub_.get(), options_).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--work_dir")));
}

}  // namespace
}  // namespace optfarm::rpc
