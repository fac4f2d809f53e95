// A job's report as a file for people: one HTML page, or Markdown.

#ifndef OPTFARM_CLIENT_CLI_JOBS_REPORT_FILE_H_
#define OPTFARM_CLIENT_CLI_JOBS_REPORT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_cli/command/farm_client.h"
#include "job_report/html_report.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

// What --out_report says of itself in help.
inline constexpr char kOutReportHelp[] =
    "Where to write the report: one HTML file without links to anything, or "
    "Markdown when the name ends in .md.";

enum class ReportFormat { kHtml, kMarkdown };

// By the name's ending: Markdown for .md and .markdown, else HTML.
ReportFormat ReportFormatOf(absl::string_view path);

// Whether the report can be written there. ERRORS: UsageError.
absl::Status CheckReportPlace(absl::string_view flag, const std::string& path);

// The report of a job that has its verdicts.
// ERRORS: those of job_report::HtmlReport.
absl::StatusOr<std::string> ReportText(const v1::Job& job, ReportFormat format,
                                       job_report::ReadFileFn read);

// The same with the job's files from its server.
absl::StatusOr<std::string> ReportTextFromServer(const v1::Job& job,
                                                 ReportFormat format,
                                                 FarmClient& client);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_REPORT_FILE_H_
