// From a checked request to the job the server is sent: every file by digest.

#ifndef OPTFARM_CLIENT_CLI_JOBS_JOB_UPLOAD_H_
#define OPTFARM_CLIENT_CLI_JOBS_JOB_UPLOAD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/jobs/job_request.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

struct JobUpload {
  // Without name, devices, no_cache.
  v1::JobSpec spec;
  // Every file the spec names.
  std::vector<FileToUpload> files;
  // What the user should know, one sentence each.
  std::vector<std::string> remarks;
};

// Reads all files of the request and names them by their digests. Built-in
// recipes go by name, users' own as a whole.
// ERRORS: those of reading files, marked kUsage.
absl::StatusOr<JobUpload> MakeJobUpload(const JobRequest& request,
                                        const TransferProgress& progress);

// Submits `request`, whose files the server was sent. A blob may have gone
// since: the server is asked again what it lacks then, and sent that.
// ERRORS: the server's.
absl::StatusOr<v1::SubmitJobResponse> SubmitWithFiles(
    FarmClient& client, const v1::SubmitJobRequest& request,
    const std::vector<FileToUpload>& files, const TransferProgress& progress);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_JOB_UPLOAD_H_
