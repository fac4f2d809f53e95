// A farm in memory, for tests of the commands that speak to one.

#ifndef OPTFARM_TESTS_CLIENT_CLI_FAKE_FARM_CLIENT_H_
#define OPTFARM_TESTS_CLIENT_CLI_FAKE_FARM_CLIENT_H_

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/flags/exit_code.h"

namespace optfarm::client_cli {

// What the farm holds. Outlives the clients of it.
struct FakeFarm {
  absl::StatusOr<v1::WhoAmIResponse> who_am_i = v1::WhoAmIResponse();
  v1::ListAuditRequest audit_request;
  v1::ListAuditResponse audit;
  // One answer to WatchJob: events to send, then how the stream ends.
  struct Stream {
    std::vector<v1::JobEvent> events;
    absl::Status end;
  };

  std::map<std::string, std::string> blobs;  // by SHA-256
  std::vector<v1::SubmitJobRequest> submits;
  std::vector<absl::Status> submit_failures;  // answered first
  v1::Job job;
  // ListJobs gives no job instead of `job`; what it was asked for.
  bool has_no_jobs = false;
  std::vector<std::string> job_filters;
  std::vector<absl::Status> get_failures;  // answered first
  std::deque<Stream> streams;
  std::vector<int64_t> watched_after;
  std::vector<v1::Device> devices;
  v1::ListDeviceHistoryResponse device_history;
  v1::ListVerdictsResponse verdicts;
  v1::ListProjectsResponse projects;
  v1::StoreUsage store;
  v1::ListBlobsResponse blob_list;
  v1::RemoveBlobsRequest removed_blobs;
  v1::RemoveBlobsResponse removals;
  std::vector<std::string> deleted_devices;
  v1::ListParticipantsResponse participants;
  std::vector<std::string> uploaded_paths;
  std::vector<v1::Token> tokens;
  std::vector<v1::CreateTuneRequest> tune_requests;
  // What looks at the tune answer, in order; the last one stays.
  std::deque<absl::StatusOr<v1::Tune>> tunes;
  absl::Status check_server;
  // From this check on the server is there; 0: it is as check_server says.
  int checks_before = 0;
  v1::QueryResultsRequest query;
  v1::ResultFilter filter;
  v1::CompareResultsResponse comparison;
  v1::ListHistoryResponse history;
  v1::RegressionRule rule;
  v1::FindRegressionsResponse regressions;
  std::vector<v1::ChangeDeviceRequest> device_changes;
  v1::QuerySqlRequest sql;
  v1::QuerySqlResponse sql_answer;
};

class FakeFarmClient final : public FarmClient {
 public:
  explicit FakeFarmClient(FakeFarm* farm) : farm_(farm) {}

  absl::Status CheckServer() override {
    if (farm_->checks_before > 0 && --farm_->checks_before == 0) {
      farm_->check_server = absl::OkStatus();
    }
    return farm_->check_server;
  }

  absl::StatusOr<int64_t> Upload(const std::vector<FileToUpload>& files,
                                 const TransferProgress&) override {
    int64_t sent = 0;
    for (const FileToUpload& file : files) {
      if (farm_->blobs.contains(file.digest.sha256())) continue;
      absl::StatusOr<std::string> bytes = ReadFile(file.path);
      if (!bytes.ok()) return bytes.status();
      farm_->uploaded_paths.push_back(file.path);
      sent += static_cast<int64_t>(bytes->size());
      farm_->blobs[file.digest.sha256()] = *std::move(bytes);
    }
    return sent;
  }

  absl::Status Download(const v1::Digest& digest, const std::string& path,
                        const TransferProgress&) override {
    const auto blob = farm_->blobs.find(digest.sha256());
    if (blob == farm_->blobs.end()) {
      return FromServer(absl::NotFoundError("no such blob"));
    }
    return WriteFileAtomically(path, blob->second);
  }

  absl::StatusOr<v1::SubmitJobResponse> Submit(
      const v1::SubmitJobRequest& request) override {
    farm_->submits.push_back(request);
    if (farm_->submits.size() <= farm_->submit_failures.size()) {
      return FromServer(farm_->submit_failures[farm_->submits.size() - 1]);
    }
    v1::SubmitJobResponse response;
    *response.mutable_job() = farm_->job;
    response.mutable_job()->set_state(v1::QUEUED);
    return response;
  }

  absl::StatusOr<v1::Job> GetJob(const std::string& job_id) override {
    if (!farm_->get_failures.empty()) {
      const absl::Status status = farm_->get_failures.back();
      farm_->get_failures.pop_back();
      return FromServer(status);
    }
    if (job_id != farm_->job.job_id()) {
      return FromServer(
          absl::NotFoundError(absl::StrCat("there is no job '", job_id, "'")));
    }
    return farm_->job;
  }

  absl::StatusOr<v1::ListJobsResponse> ListJobs(
      const v1::ListJobsRequest& request) override {
    v1::ListJobsResponse response;
    farm_->job_filters.push_back(request.filter());
    if (!farm_->has_no_jobs) *response.add_jobs() = farm_->job;
    return response;
  }

  absl::StatusOr<v1::Job> CancelJob(
      const v1::CancelJobRequest& request) override {
    return GetJob(request.job_id());
  }

  absl::Status WatchJob(
      const v1::WatchJobRequest& request, absl::Duration,
      absl::FunctionRef<void(const v1::JobEvent&)> on_event) override {
    farm_->watched_after.push_back(request.after_sequence());
    if (farm_->streams.empty()) return absl::OkStatus();
    const FakeFarm::Stream stream = std::move(farm_->streams.front());
    farm_->streams.pop_front();
    for (const v1::JobEvent& event : stream.events) on_event(event);
    return FromServer(stream.end);
  }

  absl::StatusOr<v1::ListDevicesResponse> ListDevices(
      const v1::ListDevicesRequest&) override {
    v1::ListDevicesResponse response;
    for (const v1::Device& device : farm_->devices) {
      *response.add_devices() = device;
    }
    return response;
  }

  absl::StatusOr<v1::Device> GetDevice(const std::string& name) override {
    for (const v1::Device& device : farm_->devices) {
      if (device.info().name() == name) return device;
    }
    return FromServer(absl::NotFoundError("there is no such device"));
  }
  absl::StatusOr<v1::ListDeviceHistoryResponse> ListDeviceHistory(
      const v1::ListDeviceHistoryRequest&) override {
    return farm_->device_history;
  }
  absl::StatusOr<v1::ListVerdictsResponse> ListVerdicts(
      const v1::ListVerdictsRequest&) override {
    return farm_->verdicts;
  }
  absl::StatusOr<v1::ListProjectsResponse> ListProjects(
      const v1::ListProjectsRequest&) override {
    return farm_->projects;
  }
  absl::StatusOr<v1::Device> DeleteDevice(const std::string& name) override {
    OPTFARM_ASSIGN_OR_RETURN(const v1::Device device, GetDevice(name));
    farm_->deleted_devices.push_back(name);
    return device;
  }
  absl::StatusOr<v1::ListBlobsResponse> ListBlobs(
      const v1::ListBlobsRequest& request) override {
    v1::ListBlobsResponse page = farm_->blob_list;
    // All on one page, or as many as are asked for.
    if (page.blobs_size() > request.page_size()) {
      page.mutable_blobs()->DeleteSubrange(
          request.page_size(), page.blobs_size() - request.page_size());
      page.set_next_page_token("more");
    }
    return page;
  }
  absl::StatusOr<v1::RemoveBlobsResponse> RemoveBlobs(
      const v1::RemoveBlobsRequest& request) override {
    farm_->removed_blobs.MergeFrom(request);
    return farm_->removals;
  }
  absl::StatusOr<v1::StoreUsage> GetStoreUsage() override {
    return farm_->store;
  }
  absl::StatusOr<v1::ListParticipantsResponse> ListParticipants(
      const v1::ListParticipantsRequest&) override {
    return farm_->participants;
  }

  absl::Status QueryResults(const v1::QueryResultsRequest& request,
                            v1::QueryResultsResponse* response) override {
    farm_->query = request;
    response->Clear();
    return absl::OkStatus();
  }
  absl::StatusOr<v1::CompareResultsResponse> CompareResults(
      const v1::CompareResultsRequest&) override {
    return farm_->comparison;
  }
  absl::Status ListHistory(const v1::ListHistoryRequest& request,
                           v1::ListHistoryResponse* response) override {
    const v1::ResultFilter& filter = farm_->filter = request.filter();
    response->Clear();
    const auto fits = [](const std::string& wanted, const std::string& name) {
      return wanted.empty() || wanted == name;
    };
    for (const v1::SeriesHistory& one : farm_->history.series()) {
      const v1::Series& series = one.series();
      if (fits(filter.device(), series.device()) &&
          fits(filter.model(), series.model_name()) &&
          fits(filter.recipe_name(), series.recipe_name()) &&
          fits(filter.variant(), series.variant())) {
        *response->add_series() = one;
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<v1::FindRegressionsResponse> FindRegressions(
      const v1::FindRegressionsRequest& request) override {
    farm_->rule = request.rule();
    return farm_->regressions;
  }
  absl::StatusOr<v1::Device> ChangeDevice(
      const v1::ChangeDeviceRequest& request) override {
    farm_->device_changes.push_back(request);
    return farm_->devices[0];
  }
  absl::StatusOr<v1::BackupResponse> Backup(
      const v1::BackupRequest& request) override {
    v1::BackupResponse response;
    response.set_path(request.name());
    return response;
  }
  absl::StatusOr<v1::QuerySqlResponse> QuerySql(
      const v1::QuerySqlRequest& request) override {
    farm_->sql = request;
    return farm_->sql_answer;
  }

  absl::StatusOr<v1::ListAuditResponse> ListAudit(
      const v1::ListAuditRequest& request) override {
    farm_->audit_request = request;
    return farm_->audit;
  }

  absl::StatusOr<v1::WhoAmIResponse> WhoAmI() override {
    return farm_->who_am_i;
  }

  absl::StatusOr<v1::CreateTokenResponse> CreateToken(
      const v1::CreateTokenRequest& request) override {
    v1::CreateTokenResponse response;
    response.set_secret("oft_secret");
    v1::Token& token = *response.mutable_token();
    token.set_token_id("t1");
    token.set_name(request.name());
    *token.mutable_scopes() = request.scopes();
    token.mutable_create_time()->set_seconds(1700000000);
    token.mutable_expire_time()->set_seconds(1700000000 +
                                             request.lifetime().seconds());
    farm_->tokens.push_back(token);
    return response;
  }
  absl::StatusOr<v1::ListTokensResponse> ListTokens() override {
    v1::ListTokensResponse response;
    response.mutable_tokens()->Add(farm_->tokens.begin(), farm_->tokens.end());
    return response;
  }
  absl::StatusOr<v1::Token> RevokeToken(const std::string& token_id) override {
    for (v1::Token& token : farm_->tokens) {
      if (token.token_id() != token_id) continue;
      token.mutable_revoke_time()->set_seconds(1700000001);
      return token;
    }
    return FromServer(absl::NotFoundError("no such token"));
  }

  absl::StatusOr<v1::CreateTuneResponse> CreateTune(
      const v1::CreateTuneRequest& request) override {
    farm_->tune_requests.push_back(request);
    v1::CreateTuneResponse response;
    OPTFARM_ASSIGN_OR_RETURN(*response.mutable_tune(), GetTune(""));
    response.set_existed(response.tune().state() != v1::TUNE_RUNNING);
    return response;
  }
  absl::StatusOr<v1::Tune> GetTune(const std::string&) override {
    if (farm_->tunes.empty()) {
      return FromServer(absl::NotFoundError("there is no tune"));
    }
    const absl::StatusOr<v1::Tune> tune = farm_->tunes.front();
    if (farm_->tunes.size() > 1) farm_->tunes.pop_front();
    return tune;
  }
  absl::StatusOr<v1::ListTunesResponse> ListTunes(
      const v1::ListTunesRequest&) override {
    v1::ListTunesResponse response;
    for (const absl::StatusOr<v1::Tune>& tune : farm_->tunes) {
      if (tune.ok()) *response.add_tunes() = *tune;
    }
    return response;
  }
  absl::StatusOr<v1::Tune> CancelTune(
      const v1::CancelTuneRequest& request) override {
    return GetTune(request.tune_id());
  }

 private:
  FakeFarm* const farm_;
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_TESTS_CLIENT_CLI_FAKE_FARM_CLIENT_H_
