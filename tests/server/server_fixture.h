// A real server on a free loopback port in this process, with a clock that the
// test moves.

#ifndef OPTFARM_TESTS_SERVER_SERVER_FIXTURE_H_
#define OPTFARM_TESTS_SERVER_SERVER_FIXTURE_H_

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/digest.h"
#include "base/files.h"
#include "optfarm/v1/devices.grpc.pb.h"
#include "optfarm/v1/jobs.grpc.pb.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "optfarm/v1/results.grpc.pb.h"
#include "optfarm/v1/work.grpc.pb.h"
#include "rpc/blob_transfer.h"
#include "rpc/status.h"
#include "server/server.h"
#include "tests/support/status_matchers.h"

namespace optfarm::server {

class ServerFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_ASSERT_OK_AND_ASSIGN(folder_, MakeTemporaryFolder("server"));
    options_.data_dir = JoinPath(folder_, "data");
    options_.grpc_address = "127.0.0.1:0";
    options_.clock = &clock_;
    options_.reserved_free_bytes = 0;
    options_.grace = absl::Seconds(2);
    Restart();
  }
  void TearDown() override {
    server_.reset();
    EXPECT_THAT(RemoveAll(folder_), ::optfarm::testing::IsOk());
  }
  void Restart() {
    server_.reset();
    OPTFARM_ASSERT_OK_AND_ASSIGN(server_, Server::Start(options_));
    Connect();
  }
  void Connect() {
    channel_ = grpc::CreateChannel(server_->address(),
                                   grpc::InsecureChannelCredentials());
    models_ = v1::ModelService::NewStub(channel_);
    work_ = v1::WorkService::NewStub(channel_);
    jobs_ = v1::JobService::NewStub(channel_);
    devices_ = v1::DeviceService::NewStub(channel_);
    results_ = v1::ResultService::NewStub(channel_);
  }

  // A context with a deadline that only a hanging server reaches.
  struct Context : grpc::ClientContext {
    Context() {
      set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
      set_wait_for_ready(true);
    }
  };

  v1::Digest Put(const std::string& bytes) {
    const auto digest = rpc::UploadBytes(models_.get(), bytes);
    EXPECT_TRUE(digest.ok()) << digest.status();
    return digest.ok() ? *digest : v1::Digest();
  }
  v1::SubmitJobRequest GoodSubmit() {
    v1::SubmitJobRequest request;
    v1::JobSpec& spec = *request.mutable_spec();
    // As a GraphDef begins: a node.
    *spec.mutable_model()->mutable_digest() = Put("\x0a\x02\x0a");
    spec.mutable_model()->set_name("model.pb");
    spec.mutable_recipe()->set_name("int8");
    spec.mutable_recipe()->set_transform_string("fold_constants");
    return request;
  }
  absl::StatusOr<v1::Job> Submit(const v1::SubmitJobRequest& request) {
    Context context;
    v1::SubmitJobResponse response;
    const absl::Status status =
        rpc::FromGrpc(jobs_->SubmitJob(&context, request, &response));
    if (!status.ok()) return status;
    return response.job();
  }
  absl::StatusOr<v1::Job> GetJob(const std::string& job_id) {
    Context context;
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    v1::Job job;
    const absl::Status status =
        rpc::FromGrpc(jobs_->GetJob(&context, request, &job));
    if (!status.ok()) return status;
    return job;
  }
  v1::SynchronizeRequest WorkerCall() {
    v1::SynchronizeRequest request;
    request.set_participant_id("worker-1");
    request.set_name("worker-1");
    request.set_kind(v1::SynchronizeRequest::WORKER);
    request.set_free_slots(1);
    return request;
  }
  absl::StatusOr<v1::SynchronizeResponse> Synchronize(
      const v1::SynchronizeRequest& request) {
    Context context;
    v1::SynchronizeResponse response;
    const absl::Status status =
        rpc::FromGrpc(work_->Synchronize(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
  // A worker's report, with the blobs uploaded.
  v1::Completion GoodCompletion() {
    v1::Completion completion;
    completion.mutable_report()->set_passed(true);
    *completion.mutable_report()->mutable_optimized_model() = Put("optimized");
    return completion;
  }
  // A worker takes the one optimize task that waits, and does it.
  void RunOptimize() {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto leased, Synchronize(WorkerCall()));
    ASSERT_EQ(leased.new_tasks_size(), 1);
    v1::SynchronizeRequest done = WorkerCall();
    done.set_free_slots(0);
    v1::HeldTask& held = *done.add_held();
    held.set_task_id(leased.new_tasks(0).task_id());
    held.set_attempt(leased.new_tasks(0).attempt());
    *held.mutable_completion() = GoodCompletion();
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto accepted, Synchronize(done));
    EXPECT_EQ(accepted.verdicts(0).verdict(),
              v1::TaskVerdict::COMPLETION_ACCEPTED);
  }

  std::string folder_;
  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ModelService::Stub> models_;
  std::unique_ptr<v1::WorkService::Stub> work_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::DeviceService::Stub> devices_;
  std::unique_ptr<v1::ResultService::Stub> results_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_TESTS_SERVER_SERVER_FIXTURE_H_
