// A scheduler on a real database and a real blob folder, and short ways to play
// clients, workers and agents at chosen times.

#ifndef OPTFARM_TESTS_SERVER_SCHEDULER_FIXTURE_H_
#define OPTFARM_TESTS_SERVER_SCHEDULER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/files.h"
#include "server/scheduling/job_spec_check.h"
#include "server/scheduling/scheduler.h"
#include "storage/file_blob_store.h"
#include "storage/sqlite/metadata_store.h"
#include "tests/support/status_matchers.h"

namespace optfarm::server {

inline const absl::Time kStart = absl::FromUnixSeconds(1700000000);

class SchedulerFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK_AND_ASSIGN(folder_, MakeTemporaryFolder("scheduler"));
    options_.max_attempts = 3;
    Restart();
  }
  void TearDown() override {
    scheduler_.reset();
    store_.reset();
    blobs_.reset();
    EXPECT_THAT(RemoveAll(folder_), ::optfarm::testing::IsOk());
  }

  // As if the server had been killed and started again.
  void Restart(const AwayTime& away = {}) {
    scheduler_.reset();
    store_.reset();
    blobs_.reset();
    OPTFARM_ASSERT_OK_AND_ASSIGN(store_, storage::OpenSqliteMetadataStore(
                                             JoinPath(folder_, "db"), now_));
    storage::FileBlobStoreOptions blob_options;
    blob_options.root = JoinPath(folder_, "blobs");
    OPTFARM_ASSERT_OK_AND_ASSIGN(blobs_,
                                 storage::OpenFileBlobStore(blob_options));
    scheduler_ =
        std::make_unique<Scheduler>(*store_, *blobs_, options_, "server-1");
    scheduler_->SetListener([this](const SchedulerNews& news) {
      changed_.insert(changed_.end(), news.changed_jobs.begin(),
                      news.changed_jobs.end());
    });
    OPTFARM_ASSERT_OK(scheduler_->Load(now_, away));
  }

  v1::Digest Put(const std::string& bytes) {
    const auto id = storage::PutBlob(*blobs_, bytes, now_);
    EXPECT_TRUE(id.ok()) << id.status();
    return storage::ToProto(*id);
  }

  // Client ------------------------------------------------------------------

  v1::JobSpec Spec(const std::vector<std::string>& devices = {}) {
    v1::JobSpec spec;
    *spec.mutable_model()->mutable_digest() = Put("model");
    spec.mutable_model()->set_name("model.pb");
    spec.mutable_recipe()->set_name("int8");
    for (const std::string& device : devices) {
      spec.mutable_benchmark()->add_devices(device);
    }
    return spec;
  }
  absl::StatusOr<SubmitResult> Submit(const v1::JobSpec& spec,
                                      const std::string& request_id = "") {
    Submission submission;
    submission.client_request_id = request_id;
    submission.spec_digest = Sha256Hex(spec.SerializeAsString());
    submission.spec = spec;
    submission.action_digest = ActionDigest(spec);
    return scheduler_->Submit(submission, now_);
  }
  std::string SubmitOk(const v1::JobSpec& spec) {
    const auto result = Submit(spec);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->job_id : "";
  }
  storage::StoredJob Job(const std::string& job_id) {
    auto job = store_->GetJob(job_id);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *job : storage::StoredJob();
  }
  v1::JobState State(const std::string& job_id) {
    return Job(job_id).job.state;
  }
  const storage::TaskRecord Task(const std::string& job_id, size_t index) {
    return Job(job_id).tasks.at(index);
  }

  // Worker and agent ----------------------------------------------------------

  v1::SynchronizeRequest WorkerCall(const std::string& id = "worker-1",
                                    int free_slots = 1) {
    v1::SynchronizeRequest request;
    request.set_participant_id(id);
    request.set_name(id);
    request.set_kind(v1::SynchronizeRequest::WORKER);
    request.set_build_version("tool-1");
    request.set_free_slots(free_slots);
    return request;
  }
  v1::SynchronizeRequest AgentCall(const std::string& device = "pi4",
                                   bool ready = true,
                                   const std::string& id = "agent-1") {
    v1::SynchronizeRequest request;
    request.set_participant_id(id);
    request.set_name(id);
    request.set_kind(v1::SynchronizeRequest::AGENT);
    v1::DeviceStatus& status = *request.add_devices();
    status.mutable_info()->set_name(device);
    status.set_ready(ready);
    return request;
  }
  static v1::HeldTask& Hold(v1::SynchronizeRequest& request,
                            const v1::LeasedTask& lease) {
    v1::HeldTask& held = *request.add_held();
    held.set_task_id(lease.task_id());
    held.set_attempt(lease.attempt());
    return held;
  }
  v1::SynchronizeResponse Call(const v1::SynchronizeRequest& request) {
    const auto result = scheduler_->Synchronize(
        request, scheduler_->BeginCall(request.participant_id()), now_);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->response : v1::SynchronizeResponse();
  }
  // The one lease that the call brings.
  v1::LeasedTask Lease(const v1::SynchronizeRequest& request) {
    const v1::SynchronizeResponse response = Call(request);
    EXPECT_EQ(response.new_tasks_size(), 1);
    return response.new_tasks().empty() ? v1::LeasedTask()
                                        : response.new_tasks(0);
  }
  v1::LeasedTask LeaseToWorker(const std::string& id = "worker-1") {
    return Lease(WorkerCall(id));
  }
  // Says "still at it" and nothing else.
  v1::TaskVerdict KeepAlive(const v1::LeasedTask& lease,
                            const std::string& id = "worker-1") {
    v1::SynchronizeRequest request = WorkerCall(id, 0);
    Hold(request, lease);
    return Call(request).verdicts(0);
  }
  v1::TaskVerdict Complete(const v1::LeasedTask& lease,
                           const v1::Completion& completion,
                           const std::string& id = "worker-1") {
    v1::SynchronizeRequest request = WorkerCall(id, 0);
    if (lease.has_benchmark()) {
      request.set_kind(v1::SynchronizeRequest::AGENT);
    }
    *Hold(request, lease).mutable_completion() = completion;
    return Call(request).verdicts(0);
  }
  v1::Completion GoodReport() {
    v1::Completion completion;
    v1::Report& report = *completion.mutable_report();
    report.set_passed(true);
    *report.mutable_optimized_model() = Put("optimized");
    v1::Artifact& artifact = *report.add_artifacts();
    artifact.set_name("optimized.pb");
    *artifact.mutable_digest() = report.optimized_model();
    return completion;
  }
  v1::Completion Failing(v1::Failure::Kind kind) {
    v1::Completion completion;
    *completion.mutable_failure() = MakeFailure(kind, "CODE", "what happened");
    return completion;
  }
  v1::Completion GoodBenchmark(const std::string& device = "pi4",
                               double int8_median = 50) {
    v1::Completion completion;
    for (const std::string variant : {"float", "int8"}) {
      v1::Measurement& measurement =
          *completion.mutable_benchmark()->add_measurements();
      measurement.set_device(device);
      measurement.set_variant(variant);
      measurement.set_threads(1);
      measurement.set_runs(50);
      measurement.set_median_us(variant == "float" ? 100 : int8_median);
      *measurement.mutable_model() = Put(variant);
    }
    return completion;
  }

  std::string folder_;
  absl::Time now_ = kStart;
  SchedulingOptions options_;
  std::unique_ptr<storage::MetadataStore> store_;
  std::unique_ptr<storage::BlobStore> blobs_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::string> changed_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_TESTS_SERVER_SCHEDULER_FIXTURE_H_
