// The report of a job that ran on this machine, where no server knows its spec
// and its files.

#ifndef OPTFARM_CLIENT_CLI_LOCAL_LOCAL_REPORT_H_
#define OPTFARM_CLIENT_CLI_LOCAL_LOCAL_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "client_cli/jobs/job_request.h"
#include "client_cli/jobs/report_file.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

// The report of `job`, which has its verdicts and is what `request` asked for.
// `folder` has the files that the job made.
// ERRORS: those of ReportText.
absl::StatusOr<std::string> LocalReport(const JobRequest& request,
                                        const std::string& folder,
                                        ReportFormat format, v1::Job job);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_LOCAL_LOCAL_REPORT_H_
