// What the commands ask of a farm, without gRPC in sight, so that commands are
// tested against a fake. Every error carries the exit code it should end with.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_FARM_CLIENT_H_
#define OPTFARM_CLIENT_CLI_COMMAND_FARM_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "optfarm/v1/blobs.pb.h"
#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/farm.pb.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/models.pb.h"
#include "optfarm/v1/results.pb.h"
#include "optfarm/v1/store.pb.h"
#include "optfarm/v1/tokens.pb.h"
#include "optfarm/v1/tunes.pb.h"

namespace optfarm::client_cli {

// A local file that the server should have.
struct FileToUpload {
  std::string path;
  v1::Digest digest;
};

// UNITS: bytes moved so far and to be moved in all. May be called from another
// thread than the caller's.
using TransferProgress = std::function<void(int64_t done, int64_t total)>;

// THREADS: one thread at a time.
// ERRORS: of every method: Unavailable naming the server and what to check when
// it cannot be reached, and what the service's contract lists.
class FarmClient {
 public:
  virtual ~FarmClient() = default;

  // Asks for a sign of life once, without retries: a server that is not there
  // should be known before work begins.
  virtual absl::Status CheckServer() = 0;

  // Makes sure that the server holds all files: sends what it lacks, again
  // after transient errors. Returns the bytes sent.
  virtual absl::StatusOr<int64_t> Upload(const std::vector<FileToUpload>& files,
                                         const TransferProgress& progress) = 0;

  // Writes the blob to `path` and checks it.
  virtual absl::Status Download(const v1::Digest& digest,
                                const std::string& path,
                                const TransferProgress& progress) = 0;

  // Tried again after transient errors: `request` must carry a
  // client_request_id, which makes that harmless.
  virtual absl::StatusOr<v1::SubmitJobResponse> Submit(
      const v1::SubmitJobRequest& request) = 0;

  // The calls below are made once; the caller decides about another try.
  virtual absl::StatusOr<v1::Job> GetJob(const std::string& job_id) = 0;
  virtual absl::StatusOr<v1::ListJobsResponse> ListJobs(
      const v1::ListJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::Job> CancelJob(
      const v1::CancelJobRequest& request) = 0;

  // As Submit: with a client_request_id.
  virtual absl::StatusOr<v1::CreateTuneResponse> CreateTune(
      const v1::CreateTuneRequest& request) = 0;
  // Once, as those above.
  virtual absl::StatusOr<v1::Tune> GetTune(const std::string& tune_id) = 0;
  virtual absl::StatusOr<v1::ListTunesResponse> ListTunes(
      const v1::ListTunesRequest& request) = 0;
  virtual absl::StatusOr<v1::Tune> CancelTune(
      const v1::CancelTuneRequest& request) = 0;

  // Calls `on_event` for each event until the stream ends (OK), breaks, or
  // `limit` has passed (DeadlineExceeded).
  virtual absl::Status WatchJob(
      const v1::WatchJobRequest& request, absl::Duration limit,
      absl::FunctionRef<void(const v1::JobEvent&)> on_event) = 0;

  virtual absl::StatusOr<v1::ListDevicesResponse> ListDevices(
      const v1::ListDevicesRequest& request) = 0;
  virtual absl::StatusOr<v1::Device> GetDevice(const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListDeviceHistoryResponse> ListDeviceHistory(
      const v1::ListDeviceHistoryRequest& request) = 0;
  virtual absl::StatusOr<v1::ListVerdictsResponse> ListVerdicts(
      const v1::ListVerdictsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListProjectsResponse> ListProjects(
      const v1::ListProjectsRequest& request) = 0;
  virtual absl::StatusOr<v1::StoreUsage> GetStoreUsage() = 0;
  virtual absl::StatusOr<v1::ListParticipantsResponse> ListParticipants(
      const v1::ListParticipantsRequest& request) = 0;
  // Answers of many thousands of messages: the caller gives them a place.
  virtual absl::Status QueryResults(const v1::QueryResultsRequest& request,
                                    v1::QueryResultsResponse* response) = 0;
  virtual absl::Status ListHistory(const v1::ListHistoryRequest& request,
                                   v1::ListHistoryResponse* response) = 0;
  virtual absl::StatusOr<v1::CompareResultsResponse> CompareResults(
      const v1::CompareResultsRequest& request) = 0;
  virtual absl::StatusOr<v1::FindRegressionsResponse> FindRegressions(
      const v1::FindRegressionsRequest& request) = 0;
  virtual absl::StatusOr<v1::Device> ChangeDevice(
      const v1::ChangeDeviceRequest& request) = 0;
  virtual absl::StatusOr<v1::Device> DeleteDevice(const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListBlobsResponse> ListBlobs(
      const v1::ListBlobsRequest& request) = 0;
  virtual absl::StatusOr<v1::RemoveBlobsResponse> RemoveBlobs(
      const v1::RemoveBlobsRequest& request) = 0;
  virtual absl::StatusOr<v1::BackupResponse> Backup(
      const v1::BackupRequest& request) = 0;
  virtual absl::StatusOr<v1::QuerySqlResponse> QuerySql(
      const v1::QuerySqlRequest& request) = 0;

  virtual absl::StatusOr<v1::ListAuditResponse> ListAudit(
      const v1::ListAuditRequest& request) = 0;

  virtual absl::StatusOr<v1::WhoAmIResponse> WhoAmI() = 0;
  virtual absl::StatusOr<v1::CreateTokenResponse> CreateToken(
      const v1::CreateTokenRequest& request) = 0;
  virtual absl::StatusOr<v1::ListTokensResponse> ListTokens() = 0;
  virtual absl::StatusOr<v1::Token> RevokeToken(
      const std::string& token_id) = 0;
};

// Where the server is and what to bring along; empty files: none.
struct FarmAddress {
  // HOST:PORT, or several with commas between them.
  std::string server;
  // Holds the bearer token.
  std::string token_file;
  // The token itself, in place of a file.
  std::string token;
  // PEM: who signed the server's certificate (given: TLS); a certificate of
  // our own and its key.
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
  // Of W3C's Trace Context, well-formed: the span that submits are a part of.
  std::string trace_parent;
};

// A client of the server. Nothing is sent yet.
// ERRORS: UsageError for a malformed address or an unreadable file.
absl::StatusOr<std::unique_ptr<FarmClient>> MakeFarmClient(
    const FarmAddress& address);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_FARM_CLIENT_H_
