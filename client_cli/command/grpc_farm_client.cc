// The FarmClient that speaks gRPC: the only file of this room that does.

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/server_look.h"
#include "client_cli/flags/exit_code.h"
#include "optfarm/v1/devices.grpc.pb.h"
#include "optfarm/v1/farm.grpc.pb.h"
#include "optfarm/v1/jobs.grpc.pb.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "optfarm/v1/results.grpc.pb.h"
#include "optfarm/v1/servers.grpc.pb.h"
#include "optfarm/v1/store.grpc.pb.h"
#include "optfarm/v1/tokens.grpc.pb.h"
#include "optfarm/v1/tunes.grpc.pb.h"
#include "rpc/blob_transfer.h"
#include "rpc/channel.h"
#include "rpc/retry.h"
#include "rpc/status.h"
#include "rpc/trace_parent.h"

namespace optfarm::client_cli {
namespace {

constexpr absl::Duration kSignOfLifeLimit = absl::Seconds(10);
// A server waits for what does not answer it, but not for so long.
constexpr absl::Duration kLookLimit = absl::Seconds(30);
constexpr absl::Duration kCallLimit = absl::Seconds(60);
// Longer than what the server allows a query.
constexpr absl::Duration kSqlLimit = absl::Seconds(90);
constexpr absl::Duration kBackupLimit = absl::Hours(1);

class GrpcFarmClient final : public FarmClient {
 public:
  GrpcFarmClient(const FarmAddress& address,
                 const std::shared_ptr<grpc::Channel>& channel)
      : server_(address.server),
        speaks_tls_(!address.tls_ca.empty()),
        trace_parent_(address.trace_parent),
        models_(v1::ModelService::NewStub(channel)),
        jobs_(v1::JobService::NewStub(channel)),
        devices_(v1::DeviceService::NewStub(channel)),
        results_(v1::ResultService::NewStub(channel)),
        tokens_(v1::TokenService::NewStub(channel)),
        store_(v1::StoreService::NewStub(channel)),
        tunes_(v1::TuneService::NewStub(channel)),
        farm_(v1::FarmService::NewStub(channel)),
        servers_(v1::ServerService::NewStub(channel)) {}

  absl::StatusOr<v1::ServerState> GetServer() {
    v1::ServerState response;
    OPTFARM_RETURN_IF_ERROR(
        Call(servers_.get(), &v1::ServerService::StubInterface::GetServer,
             v1::GetServerRequest(), &response, kLookLimit));
    return response;
  }

  absl::Status CheckServer() override {
    v1::FindMissingResponse response;
    return Call(models_.get(), &v1::ModelService::StubInterface::FindMissing,
                v1::FindMissingRequest(), &response, kSignOfLifeLimit);
  }

  absl::StatusOr<int64_t> Upload(const std::vector<FileToUpload>& files,
                                 const TransferProgress& progress) override {
    std::vector<rpc::UploadSource> sources;
    for (const FileToUpload& file : files) {
      sources.push_back({file.digest, file.path, ""});
    }
    rpc::TransferOptions options;
    options.progress = progress;
    absl::StatusOr<int64_t> sent =
        rpc::UploadMissing(models_.get(), sources, options);
    if (!sent.ok()) return Explain(sent.status());
    return sent;
  }

  absl::Status Download(const v1::Digest& digest, const std::string& path,
                        const TransferProgress& progress) override {
    rpc::TransferOptions options;
    options.progress = progress;
    return Explain(rpc::DownloadBlob(models_.get(), digest, path, options));
  }

  absl::StatusOr<v1::SubmitJobResponse> Submit(
      const v1::SubmitJobRequest& request) override {
    v1::SubmitJobResponse response;
    OPTFARM_RETURN_IF_ERROR(rpc::Retry(rpc::RetryOptions(), [&] {
      // A part of the caller's trace.
      grpc::ClientContext context;
      SetDeadline(kCallLimit, &context);
      if (!trace_parent_.empty()) {
        context.AddMetadata(rpc::kTraceParentKey, trace_parent_);
      }
      return rpc::Attempt{Explain(
          rpc::FromGrpc(jobs_->SubmitJob(&context, request, &response)))};
    }));
    return response;
  }

  absl::StatusOr<v1::Job> GetJob(const std::string& job_id) override {
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    v1::Job job;
    OPTFARM_RETURN_IF_ERROR(Call(jobs_.get(),
                                 &v1::JobService::StubInterface::GetJob,
                                 request, &job, kCallLimit));
    return job;
  }

  absl::StatusOr<v1::ListJobsResponse> ListJobs(
      const v1::ListJobsRequest& request) override {
    v1::ListJobsResponse response;
    OPTFARM_RETURN_IF_ERROR(Call(jobs_.get(),
                                 &v1::JobService::StubInterface::ListJobs,
                                 request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::Job> CancelJob(
      const v1::CancelJobRequest& request) override {
    v1::Job job;
    OPTFARM_RETURN_IF_ERROR(Call(jobs_.get(),
                                 &v1::JobService::StubInterface::CancelJob,
                                 request, &job, kCallLimit));
    return job;
  }

  absl::StatusOr<v1::CreateTuneResponse> CreateTune(
      const v1::CreateTuneRequest& request) override {
    v1::CreateTuneResponse response;
    OPTFARM_RETURN_IF_ERROR(rpc::Retry(rpc::RetryOptions(), [&] {
      return rpc::Attempt{Call(tunes_.get(),
                               &v1::TuneService::StubInterface::CreateTune,
                               request, &response, kCallLimit)};
    }));
    return response;
  }

  absl::StatusOr<v1::Tune> GetTune(const std::string& tune_id) override {
    v1::GetTuneRequest request;
    request.set_tune_id(tune_id);
    v1::Tune tune;
    OPTFARM_RETURN_IF_ERROR(Call(tunes_.get(),
                                 &v1::TuneService::StubInterface::GetTune,
                                 request, &tune, kCallLimit));
    return tune;
  }

  absl::StatusOr<v1::ListTunesResponse> ListTunes(
      const v1::ListTunesRequest& request) override {
    v1::ListTunesResponse response;
    OPTFARM_RETURN_IF_ERROR(Call(tunes_.get(),
                                 &v1::TuneService::StubInterface::ListTunes,
                                 request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::Tune> CancelTune(
      const v1::CancelTuneRequest& request) override {
    v1::Tune tune;
    OPTFARM_RETURN_IF_ERROR(Call(tunes_.get(),
                                 &v1::TuneService::StubInterface::CancelTune,
                                 request, &tune, kCallLimit));
    return tune;
  }

  absl::Status WatchJob(
      const v1::WatchJobRequest& request, absl::Duration limit,
      absl::FunctionRef<void(const v1::JobEvent&)> on_event) override {
    grpc::ClientContext context;
    SetDeadline(limit, &context);
    auto reader = jobs_->WatchJob(&context, request);
    v1::JobEvent event;
    while (reader->Read(&event)) on_event(event);
    return Explain(rpc::FromGrpc(reader->Finish()));
  }

  absl::StatusOr<v1::ListDevicesResponse> ListDevices(
      const v1::ListDevicesRequest& request) override {
    v1::ListDevicesResponse response;
    OPTFARM_RETURN_IF_ERROR(Call(devices_.get(),
                                 &v1::DeviceService::StubInterface::ListDevices,
                                 request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::Device> GetDevice(const std::string& name) override {
    v1::GetDeviceRequest request;
    request.set_name(name);
    v1::Device response;
    OPTFARM_RETURN_IF_ERROR(Call(devices_.get(),
                                 &v1::DeviceService::StubInterface::GetDevice,
                                 request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::Device> DeleteDevice(const std::string& name) override {
    v1::DeleteDeviceRequest request;
    request.set_name(name);
    v1::Device response;
    OPTFARM_RETURN_IF_ERROR(
        Call(devices_.get(), &v1::DeviceService::StubInterface::DeleteDevice,
             request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::ListBlobsResponse> ListBlobs(
      const v1::ListBlobsRequest& request) override {
    v1::ListBlobsResponse response;
    OPTFARM_RETURN_IF_ERROR(Call(models_.get(),
                                 &v1::ModelService::StubInterface::ListBlobs,
                                 request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::RemoveBlobsResponse> RemoveBlobs(
      const v1::RemoveBlobsRequest& request) override {
    v1::RemoveBlobsResponse response;
    OPTFARM_RETURN_IF_ERROR(Call(models_.get(),
                                 &v1::ModelService::StubInterface::RemoveBlobs,
                                 request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::StoreUsage> GetStoreUsage() override {
    v1::StoreUsage response;
    OPTFARM_RETURN_IF_ERROR(
        Call(farm_.get(), &v1::FarmService::StubInterface::GetStoreUsage,
             v1::GetStoreUsageRequest(), &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::ListDeviceHistoryResponse> ListDeviceHistory(
      const v1::ListDeviceHistoryRequest& request) override {
    v1::ListDeviceHistoryResponse response;
    OPTFARM_RETURN_IF_ERROR(
        Call(farm_.get(), &v1::FarmService::StubInterface::ListDeviceHistory,
             request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::ListVerdictsResponse> ListVerdicts(
      const v1::ListVerdictsRequest& request) override {
    v1::ListVerdictsResponse response;
    OPTFARM_RETURN_IF_ERROR(Call(farm_.get(),
                                 &v1::FarmService::StubInterface::ListVerdicts,
                                 request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::ListProjectsResponse> ListProjects(
      const v1::ListProjectsRequest& request) override {
    v1::ListProjectsResponse response;
    OPTFARM_RETURN_IF_ERROR(Call(farm_.get(),
                                 &v1::FarmService::StubInterface::ListProjects,
                                 request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::ListParticipantsResponse> ListParticipants(
      const v1::ListParticipantsRequest& request) override {
    v1::ListParticipantsResponse response;
    OPTFARM_RETURN_IF_ERROR(
        Call(farm_.get(), &v1::FarmService::StubInterface::ListParticipants,
             request, &response, kCallLimit));
    return response;
  }

  absl::Status QueryResults(const v1::QueryResultsRequest& request,
                            v1::QueryResultsResponse* response) override {
    return Call(results_.get(), &v1::ResultService::StubInterface::QueryResults,
                request, response, kCallLimit);
  }

  absl::StatusOr<v1::CompareResultsResponse> CompareResults(
      const v1::CompareResultsRequest& request) override {
    v1::CompareResultsResponse response;
    OPTFARM_RETURN_IF_ERROR(
        Call(results_.get(), &v1::ResultService::StubInterface::CompareResults,
             request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::ListAuditResponse> ListAudit(
      const v1::ListAuditRequest& request) override {
    v1::ListAuditResponse response;
    OPTFARM_RETURN_IF_ERROR(Call(store_.get(),
                                 &v1::StoreService::StubInterface::ListAudit,
                                 request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::WhoAmIResponse> WhoAmI() override {
    v1::WhoAmIResponse response;
    OPTFARM_RETURN_IF_ERROR(
        Call(tokens_.get(), &v1::TokenService::StubInterface::WhoAmI,
             v1::WhoAmIRequest(), &response, kSignOfLifeLimit));
    return response;
  }

  absl::StatusOr<v1::CreateTokenResponse> CreateToken(
      const v1::CreateTokenRequest& request) override {
    v1::CreateTokenResponse response;
    OPTFARM_RETURN_IF_ERROR(Call(tokens_.get(),
                                 &v1::TokenService::StubInterface::CreateToken,
                                 request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::ListTokensResponse> ListTokens() override {
    v1::ListTokensResponse response;
    OPTFARM_RETURN_IF_ERROR(
        Call(tokens_.get(), &v1::TokenService::StubInterface::ListTokens,
             v1::ListTokensRequest(), &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::Token> RevokeToken(const std::string& token_id) override {
    v1::RevokeTokenRequest request;
    request.set_token_id(token_id);
    v1::Token token;
    OPTFARM_RETURN_IF_ERROR(Call(tokens_.get(),
                                 &v1::TokenService::StubInterface::RevokeToken,
                                 request, &token, kCallLimit));
    return token;
  }

  absl::Status ListHistory(const v1::ListHistoryRequest& request,
                           v1::ListHistoryResponse* response) override {
    return Call(results_.get(), &v1::ResultService::StubInterface::ListHistory,
                request, response, kCallLimit);
  }

  absl::StatusOr<v1::FindRegressionsResponse> FindRegressions(
      const v1::FindRegressionsRequest& request) override {
    v1::FindRegressionsResponse response;
    OPTFARM_RETURN_IF_ERROR(
        Call(results_.get(), &v1::ResultService::StubInterface::FindRegressions,
             request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::Device> ChangeDevice(
      const v1::ChangeDeviceRequest& request) override {
    v1::Device response;
    OPTFARM_RETURN_IF_ERROR(
        Call(devices_.get(), &v1::DeviceService::StubInterface::ChangeDevice,
             request, &response, kCallLimit));
    return response;
  }

  absl::StatusOr<v1::BackupResponse> Backup(
      const v1::BackupRequest& request) override {
    v1::BackupResponse response;
    OPTFARM_RETURN_IF_ERROR(Call(store_.get(),
                                 &v1::StoreService::StubInterface::Backup,
                                 request, &response, kBackupLimit));
    return response;
  }

  absl::StatusOr<v1::QuerySqlResponse> QuerySql(
      const v1::QuerySqlRequest& request) override {
    v1::QuerySqlResponse response;
    grpc::ClientContext context;
    SetDeadline(kSqlLimit, &context);
    const absl::Status status =
        rpc::FromGrpc(store_->QuerySql(&context, request, &response));
    // The query's own time, of which the server says more than that it passed.
    if (absl::IsDeadlineExceeded(status)) {
      return WithExitCode(status, ExitCode::kTimeout);
    }
    OPTFARM_RETURN_IF_ERROR(Explain(status));
    return response;
  }

 private:
  static void SetDeadline(absl::Duration limit, grpc::ClientContext* context) {
    // A time too far away for the clock's type is no deadline.
    if (limit < absl::Hours(24 * 365)) {
      context->set_deadline(std::chrono::system_clock::now() +
                            absl::ToChronoMilliseconds(limit));
    }
  }

  template <typename Stub, typename Request, typename Response>
  absl::Status Call(Stub* stub,
                    grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                 const Request&, Response*),
                    const Request& request, Response* response,
                    absl::Duration limit) {
    grpc::ClientContext context;
    SetDeadline(limit, &context);
    return Explain(rpc::FromGrpc((stub->*method)(&context, request, response)));
  }

  // Ends the program as an absent server does, but trying again is no help.
  static absl::Status Mistaken(const std::string& message) {
    return WithExitCode(absl::FailedPreconditionError(message),
                        ExitCode::kUnavailable);
  }

  // OpenSSL spells its reasons "wrong version number", BoringSSL
  // WRONG_VERSION_NUMBER.
  static bool Says(const absl::Status& status, absl::string_view reason) {
    const std::string message = absl::StrReplaceAll(
        absl::AsciiStrToLower(status.message()), {{"_", " "}});
    return absl::StrContains(message, reason);
  }

  // Adds what the user can do about it, and the exit code.
  absl::Status Explain(const absl::Status& status) const {
    switch (status.code()) {
      case absl::StatusCode::kOk:
        return status;
      case absl::StatusCode::kUnavailable:
        if (Says(status, "wrong version number")) {
          return Mistaken(
              absl::StrCat("the server at ", server_,
                           " does not use TLS; leave --tls_ca out (or set "
                           "the context without it)"));
        }
        if (Says(status, "http1.x server")) {
          return Mistaken(absl::StrCat(
              "at ", server_,
              " an HTTP server answers: that is where optfarm-server --http "
              "listens; give the address of its --grpc"));
        }
        if (Says(status, "certificate verify failed")) {
          return Mistaken(
              absl::StrCat("the certificate of the server at ", server_,
                           " is not signed by the CA of --tls_ca, or is not "
                           "for this name"));
        }
        return FromServer(absl::UnavailableError(absl::StrCat(
            "cannot reach the server at ", server_, ": ", status.message(),
            " (is optfarm-server running there? --server or OPTFARM_SERVER "
            "selects another",
            speaks_tls_ ? ")" : "; a server with TLS requires --tls_ca)")));
      case absl::StatusCode::kDeadlineExceeded:
        return FromServer(absl::DeadlineExceededError(
            absl::StrCat("the server at ", server_,
                         " did not answer in time: ", status.message())));
      case absl::StatusCode::kUnimplemented:
        return FromServer(absl::UnimplementedError(
            absl::StrCat("the server at ", server_,
                         " is older than this optctl and does not support "
                         "this call; upgrade the server")));
      default:
        return FromServer(status);
    }
  }

  const std::string server_;
  const bool speaks_tls_;
  // Empty: there is no trace.
  const std::string trace_parent_;
  const std::unique_ptr<v1::ModelService::StubInterface> models_;
  const std::unique_ptr<v1::JobService::StubInterface> jobs_;
  const std::unique_ptr<v1::DeviceService::StubInterface> devices_;
  const std::unique_ptr<v1::ResultService::StubInterface> results_;
  const std::unique_ptr<v1::TokenService::StubInterface> tokens_;
  const std::unique_ptr<v1::StoreService::StubInterface> store_;
  const std::unique_ptr<v1::TuneService::StubInterface> tunes_;
  const std::unique_ptr<v1::FarmService::StubInterface> farm_;
  const std::unique_ptr<v1::ServerService::StubInterface> servers_;
};

absl::StatusOr<std::shared_ptr<grpc::Channel>> ChannelTo(
    const FarmAddress& address) {
  rpc::ChannelOptions options;
  options.target = address.server;
  options.token_file = address.token_file;
  options.token = address.token;
  options.tls = {address.tls_ca, address.tls_cert, address.tls_key};
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      rpc::MakeChannel(options);
  if (!channel.ok()) {
    return WithExitCode(channel.status(), ExitCode::kUsage);
  }
  return channel;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FarmClient>> MakeFarmClient(
    const FarmAddress& address) {
  OPTFARM_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                           ChannelTo(address));
  return std::make_unique<GrpcFarmClient>(address, channel);
}

absl::StatusOr<v1::ServerState> LookAtServer(const FarmAddress& address) {
  OPTFARM_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                           ChannelTo(address));
  return GrpcFarmClient(address, channel).GetServer();
}

}  // namespace optfarm::client_cli
