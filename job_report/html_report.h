// A job as one HTML file with all that the page shows of it, which needs
// neither a server nor a network.

#ifndef OPTFARM_JOB_REPORT_HTML_REPORT_H_
#define OPTFARM_JOB_REPORT_HTML_REPORT_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "optfarm/v1/blobs.pb.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::job_report {

// UNITS: bytes of a report. A mail takes it.
inline constexpr size_t kMostHtmlBytes = 2'000'000;

// The bytes of one of the job's files. The report goes without a file that
// cannot be read.
using ReadFileFn =
    absl::FunctionRef<absl::StatusOr<std::string>(const v1::Digest& digest)>;

// Reads the pictures of the samples that changed most and the tasks' logs, as
// far as there is room.
// ERRORS: Unimplemented where the page was left out of the build;
// ResourceExhausted for a job that does not fit without any file.
absl::StatusOr<std::string> HtmlReport(v1::Job job, ReadFileFn read);

}  // namespace optfarm::job_report

#endif  // OPTFARM_JOB_REPORT_HTML_REPORT_H_
