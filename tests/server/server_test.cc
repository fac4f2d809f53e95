// The server as its clients, workers and agents meet it.

#include "server/server.h"

#include <gmock/gmock.h>
#include <grpcpp/health_check_service_interface.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "optfarm/v1/store.grpc.pb.h"
#include "rpc/channel.h"
#include "tests/server/server_fixture.h"

namespace optfarm::server {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;
using ::testing::Not;

class ServerTest : public ServerFixture {
 protected:
  absl::Status SubmitStatus(const v1::SubmitJobRequest& request) {
    return Submit(request).status();
  }
};

TEST_F(ServerTest, RunsJobEndToEnd) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job submitted, Submit(GoodSubmit()));
  EXPECT_EQ(submitted.state(), v1::QUEUED);
  RunOptimize();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, GetJob(submitted.job_id()));
  EXPECT_EQ(job.state(), v1::SUCCEEDED);
  EXPECT_TRUE(job.report().passed());
}

TEST_F(ServerTest, JobSurvivesRestart) {
  v1::SubmitJobRequest request = GoodSubmit();
  request.set_client_request_id("request-1");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job before, Submit(request));
  Restart();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job after, Submit(request));
  EXPECT_EQ(after.job_id(), before.job_id());
  RunOptimize();
  EXPECT_EQ(GetJob(before.job_id())->state(), v1::SUCCEEDED);
}

TEST_F(ServerTest, SubmitWithoutBlobsListsThem) {
  v1::SubmitJobRequest request = GoodSubmit();
  v1::DataSource& source =
      *request.mutable_spec()->mutable_calibration()->add_sources();
  source.set_role(v1::DataSource::SAMPLES);
  v1::DataFile& file = *source.add_files();
  file.set_path("a/b.png");
  *file.mutable_digest() = rpc::DigestOfBytes("missing");
  const absl::Status status = SubmitStatus(request);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("1 of the job's blobs")));
  const auto payload =
      status.GetPayload("type.googleapis.com/optfarm.v1.SubmitJobFailure");
  ASSERT_TRUE(payload.has_value());
  v1::SubmitJobFailure failure;
  ASSERT_TRUE(failure.ParseFromString(std::string(*payload)));
  EXPECT_EQ(failure.missing_blobs(0).sha256(), file.digest().sha256());
}

TEST_F(ServerTest, RefusesBadSpecsWithAdvice) {
  struct Case {
    std::function<void(v1::JobSpec&)> spoil;
    absl::StatusCode code;
    std::string message;
  };
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  const std::vector<Case> cases = {
      {[](auto& s) {
         s.mutable_recipe()->set_transform_string("fold_constant");
       },
       kInvalid, "fold_constants"},
      {[](auto& s) {
         s.mutable_recipe()->set_transform_string("fold_constants(a=1)");
       },
       kInvalid, "'a'"},
      {[](auto& s) { s.mutable_recipe()->set_transform_string("x("); },
       kInvalid, "recipe"},
      {[](auto& s) { s.mutable_recipe()->clear_transform_string(); }, kInvalid,
       "0 transforms"},
      {[](auto& s) { s.mutable_recipe()->set_name("../x"); }, kInvalid,
       "recipe"},
      {[](auto& s) { s.set_recipe_name("int8"); }, absl::StatusCode::kNotFound,
       "no worker"},
      {[](auto& s) { s.clear_recipe_source(); }, kInvalid, "recipe is missing"},
      {[](auto& s) { s.mutable_benchmark()->add_devices("pi4"); },
       absl::StatusCode::kNotFound, "'pi4'"},
      {[](auto& s) { s.mutable_benchmark()->add_devices("a b"); }, kInvalid,
       "'a b'"},
      {[](auto& s) { s.mutable_benchmark()->add_threads(0); }, kInvalid,
       "threads"},
      {[](auto& s) { s.mutable_deadlines()->mutable_run()->set_seconds(-1); },
       kInvalid, "deadlines.run"},
      {[](auto& s) { s.set_max_attempts(1000); }, kInvalid, "max_attempts"},
      {[](auto& s) { s.add_outputs(""); }, kInvalid, "outputs"},
      {[](auto& s) {
         s.mutable_recipe()->mutable_calibration()->set_required(true);
       },
       kInvalid, "folder of samples"},
      {[](auto& s) {
         s.mutable_recipe()->mutable_bounds()->set_min_top1_agreement(
             std::numeric_limits<double>::quiet_NaN());
       },
       kInvalid, "min_top1_agreement"},
  };
  for (const Case& c : cases) {
    v1::SubmitJobRequest request = GoodSubmit();
    c.spoil(*request.mutable_spec());
    EXPECT_THAT(SubmitStatus(request), StatusIs(c.code, HasSubstr(c.message)));
  }
}

TEST_F(ServerTest, SaysWhatAWrongModelFileIs) {
  struct Case {
    std::string bytes;
    std::string what;
  };
  for (const Case& c :
       {Case{"PK\x03\x04zip", "zip"}, Case{"\x08\x01\x12xx", "SavedModel"},
        Case{"\x89PNG....", "PNG"}}) {
    v1::SubmitJobRequest request = GoodSubmit();
    *request.mutable_spec()->mutable_model()->mutable_digest() = Put(c.bytes);
    EXPECT_THAT(
        SubmitStatus(request),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(c.what)));
  }
}

TEST_F(ServerTest, WatchShowsAJobToItsEndAndResumes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(GoodSubmit()));
  Context context;
  v1::WatchJobRequest request;
  request.set_job_id(job.job_id());
  auto reader = jobs_->WatchJob(&context, request);
  v1::JobEvent event;
  // The stream is open and has caught up before anything else happens.
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.sequence(), 1);
  RunOptimize();
  int64_t last = 1;
  while (reader->Read(&event)) {
    EXPECT_EQ(event.sequence(), last + 1);
    last = event.sequence();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(event.job_state().state(), v1::SUCCEEDED);

  Context resumed;
  request.set_after_sequence(last - 1);
  reader = jobs_->WatchJob(&resumed, request);
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.sequence(), last);
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_TRUE(reader->Finish().ok());

  Context beyond;
  request.set_after_sequence(last + 1);
  reader = jobs_->WatchJob(&beyond, request);
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, WatchWithoutFollowingEndsAtOnce) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(GoodSubmit()));
  Context context;
  v1::WatchJobRequest request;
  request.set_job_id(job.job_id());
  request.set_no_follow(true);
  auto reader = jobs_->WatchJob(&context, request);
  v1::JobEvent event;
  int events = 0;
  while (reader->Read(&event)) ++events;
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(events, 1);
}

TEST_F(ServerTest, WatchOfUnknownJobIsNotFound) {
  Context context;
  v1::WatchJobRequest request;
  request.set_job_id("nope");
  auto reader = jobs_->WatchJob(&context, request);
  v1::JobEvent event;
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServerTest, AbandonedWatchesAreForgotten) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(GoodSubmit()));
  for (int i = 0; i < 20; ++i) {
    Context context;
    v1::WatchJobRequest request;
    request.set_job_id(job.job_id());
    auto reader = jobs_->WatchJob(&context, request);
    v1::JobEvent event;
    ASSERT_TRUE(reader->Read(&event));
    context.TryCancel();
    reader->Finish();
  }
  RunOptimize();
}

TEST_F(ServerTest, HeldCallIsAnsweredWhenWorkComes) {
  v1::SynchronizeRequest request = WorkerCall();
  request.mutable_long_poll()->set_seconds(60);
  absl::StatusOr<v1::SynchronizeResponse> response;
  std::thread worker([&] { response = Synchronize(request); });
  // Whichever comes first: the clock does not move, so only the job ends it.
  EXPECT_THAT(Submit(GoodSubmit()), IsOk());
  worker.join();
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->new_tasks_size(), 1);
}

TEST_F(ServerTest, HeldCallIsAnsweredWhenItsTimeIsUp) {
  v1::SynchronizeRequest request = WorkerCall();
  request.mutable_long_poll()->set_seconds(30);
  std::atomic<bool> answered = false;
  absl::StatusOr<v1::SynchronizeResponse> response;
  std::thread worker([&] {
    response = Synchronize(request);
    answered = true;
  });
  while (!answered) {
    clock_.Advance(absl::Seconds(31));
    server_->Wake();
  }
  worker.join();
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->new_tasks_size(), 0);
}

TEST_F(ServerTest, NewerCallEndsTheHeldOne) {
  v1::SynchronizeRequest request = WorkerCall();
  request.set_free_slots(0);
  request.mutable_long_poll()->set_seconds(60);
  std::atomic<bool> answered = false;
  absl::StatusOr<v1::SynchronizeResponse> older;
  std::thread worker([&] {
    older = Synchronize(request);
    answered = true;
  });
  while (!answered) {
    // The held call may arrive while this one is served, and is then the newer.
    const auto newer = Synchronize(WorkerCall());
    if (!newer.ok()) {
      EXPECT_THAT(newer, StatusIs(absl::StatusCode::kAborted, _));
    }
  }
  worker.join();
  EXPECT_THAT(older, StatusIs(absl::StatusCode::kAborted, _));
}

TEST_F(ServerTest, ListsByFilterAndPage) {
  for (int i = 0; i < 3; ++i) {
    v1::SubmitJobRequest request = GoodSubmit();
    request.mutable_spec()->set_name("job" + std::to_string(i));
    EXPECT_THAT(Submit(request), IsOk());
  }
  v1::ListJobsRequest request;
  request.set_filter("state=queued recipe=int8 model=model.pb");
  request.set_page_size(2);
  v1::ListJobsResponse page;
  {
    Context context;
    ASSERT_TRUE(jobs_->ListJobs(&context, request, &page).ok());
  }
  ASSERT_EQ(page.jobs_size(), 2);
  EXPECT_EQ(page.jobs(0).spec().name(), "job2");
  request.set_page_token(page.next_page_token());
  {
    Context context;
    page.Clear();
    ASSERT_TRUE(jobs_->ListJobs(&context, request, &page).ok());
  }
  ASSERT_EQ(page.jobs_size(), 1);
  EXPECT_EQ(page.jobs(0).spec().name(), "job0");
  EXPECT_EQ(page.next_page_token(), "");
  for (const std::string bad : {"state=x", "color=red", "state"}) {
    Context context;
    request.set_filter(bad);
    EXPECT_EQ(jobs_->ListJobs(&context, request, &page).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << bad;
  }
}

TEST_F(ServerTest, ShutdownEndsWatchesAndHeldCalls) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Job job, Submit(GoodSubmit()));
  Context context;
  v1::WatchJobRequest watch;
  watch.set_job_id(job.job_id());
  auto reader = jobs_->WatchJob(&context, watch);
  v1::JobEvent event;
  ASSERT_TRUE(reader->Read(&event));
  v1::SynchronizeRequest request = WorkerCall();
  request.set_free_slots(0);
  request.mutable_long_poll()->set_seconds(60);
  absl::Status held;
  v1::SynchronizeResponse response;
  std::thread worker([&] {
    Context call;
    // It may come when nobody listens any more.
    call.set_wait_for_ready(false);
    held = rpc::FromGrpc(work_->Synchronize(&call, request, &response));
  });
  server_->Shutdown();
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  worker.join();
  if (held.ok()) {
    EXPECT_TRUE(response.drain());
  } else {
    // gRPC's words for a server that is going, or gone.
    EXPECT_TRUE(absl::IsCancelled(held) || absl::IsUnavailable(held)) << held;
  }
}

TEST_F(ServerTest, TokenIsNeededForEveryMethodAndChecked) {
  options_.token = "secret-token";
  Restart();
  int methods = 0;
  const auto refused = [&](const grpc::Status& status) {
    ++methods;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED)
        << status.error_message();
    EXPECT_THAT(status.error_message(), Not(HasSubstr("secret")));
  };
  const auto unary = [&](auto method) {
    Context context;
    context.AddMetadata("authorization", "Bearer wrong");
    refused(method(&context));
  };
  const auto call = [&](auto& stub, auto method, auto request, auto response) {
    unary([&](grpc::ClientContext* context) {
      return (stub.get()->*method)(context, request, &response);
    });
  };
  using Models = v1::ModelService::Stub;
  using Jobs = v1::JobService::Stub;
  using Devices = v1::DeviceService::Stub;
  using Results = v1::ResultService::Stub;
  using Work = v1::WorkService::Stub;
  call(models_, &Models::FindMissing, v1::FindMissingRequest(),
       v1::FindMissingResponse());
  call(models_, &Models::QueryUpload, v1::QueryUploadRequest(),
       v1::QueryUploadResponse());
  call(models_, &Models::ListBlobs, v1::ListBlobsRequest(),
       v1::ListBlobsResponse());
  call(models_, &Models::RemoveBlobs, v1::RemoveBlobsRequest(),
       v1::RemoveBlobsResponse());
  call(jobs_, &Jobs::SubmitJob, v1::SubmitJobRequest(),
       v1::SubmitJobResponse());
  call(jobs_, &Jobs::GetJob, v1::GetJobRequest(), v1::Job());
  call(jobs_, &Jobs::ListJobs, v1::ListJobsRequest(), v1::ListJobsResponse());
  call(jobs_, &Jobs::CancelJob, v1::CancelJobRequest(), v1::Job());
  call(devices_, &Devices::ListDevices, v1::ListDevicesRequest(),
       v1::ListDevicesResponse());
  call(devices_, &Devices::GetDevice, v1::GetDeviceRequest(), v1::Device());
  call(devices_, &Devices::ChangeDevice, v1::ChangeDeviceRequest(),
       v1::Device());
  call(devices_, &Devices::DeleteDevice, v1::DeleteDeviceRequest(),
       v1::Device());
  call(results_, &Results::QueryResults, v1::QueryResultsRequest(),
       v1::QueryResultsResponse());
  call(results_, &Results::CompareResults, v1::CompareResultsRequest(),
       v1::CompareResultsResponse());
  call(results_, &Results::ListHistory, v1::ListHistoryRequest(),
       v1::ListHistoryResponse());
  call(results_, &Results::FindRegressions, v1::FindRegressionsRequest(),
       v1::FindRegressionsResponse());
  const auto store = v1::StoreService::NewStub(channel_);
  call(store, &v1::StoreService::Stub::Backup, v1::BackupRequest(),
       v1::BackupResponse());
  call(store, &v1::StoreService::Stub::QuerySql, v1::QuerySqlRequest(),
       v1::QuerySqlResponse());
  call(store, &v1::StoreService::Stub::ListAudit, v1::ListAuditRequest(),
       v1::ListAuditResponse());
  call(work_, &Work::Synchronize, v1::SynchronizeRequest(),
       v1::SynchronizeResponse());
  unary([&](grpc::ClientContext* context) {
    v1::UploadResponse response;
    return models_->Upload(context, &response)->Finish();
  });
  unary([&](grpc::ClientContext* context) {
    return models_->Download(context, v1::DownloadRequest())->Finish();
  });
  unary([&](grpc::ClientContext* context) {
    return jobs_->WatchJob(context, v1::WatchJobRequest())->Finish();
  });
  int declared = 0;
  for (const auto* file :
       {v1::UploadRequest::descriptor()->file(), v1::Job::descriptor()->file(),
        v1::Device::descriptor()->file(), v1::Result::descriptor()->file(),
        v1::HeldTask::descriptor()->file(),
        v1::BackupRequest::descriptor()->file()}) {
    declared += file->service(0)->method_count();
  }
  EXPECT_EQ(methods, declared) << "a method is not tested here";

  Context context;
  context.AddMetadata(rpc::kAuthorizationKey,
                      std::string(rpc::kBearerPrefix) + "secret-token");
  v1::ListDevicesResponse response;
  EXPECT_TRUE(
      devices_->ListDevices(&context, v1::ListDevicesRequest(), &response)
          .ok());
}

TEST_F(ServerTest, OneServerADataFolder) {
  EXPECT_THAT(Server::Start(options_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another optfarm-server")));
}

TEST_F(ServerTest, ListensBeyondLoopbackOnlyWithAToken) {
  ServerOptions open = options_;
  open.data_dir = JoinPath(folder_, "other");
  for (const std::string address :
       {"0.0.0.0:0", "[::]:0", "127.example.com:0", "192.168.1.1:0"}) {
    open.grpc_address = address;
    EXPECT_THAT(Server::Start(open),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("--token_file")));
  }
  open.grpc_address = "0.0.0.0:0";
  open.token = "token";
  EXPECT_THAT(Server::Start(open), IsOk());
}

TEST_F(ServerTest, PortInUseIsAnErrorNotAShare) {
  ServerOptions second = options_;
  second.data_dir = JoinPath(folder_, "other");
  second.grpc_address = server_->address();
  EXPECT_THAT(Server::Start(second),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("in use")));
}

}  // namespace
}  // namespace optfarm::server
