#include "client_cli/jobs/report_file.h"

#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/flags/exit_code.h"
#include "job_report/markdown_report.h"

namespace optfarm::client_cli {

ReportFormat ReportFormatOf(absl::string_view path) {
  return absl::EndsWithIgnoreCase(path, ".md") ||
                 absl::EndsWithIgnoreCase(path, ".markdown")
             ? ReportFormat::kMarkdown
             : ReportFormat::kHtml;
}

absl::Status CheckReportPlace(absl::string_view flag, const std::string& path) {
  if (IsFolder(path)) {
    return UsageError(
        absl::StrCat(flag, ": '", path, "' is a folder; give a file's name"));
  }
  return Annotate(AtomicFile::Create(path).status(), flag);
}

absl::StatusOr<std::string> ReportText(const v1::Job& job, ReportFormat format,
                                       job_report::ReadFileFn read) {
  if (format == ReportFormat::kMarkdown) {
    return job_report::MarkdownReport(job, "");
  }
  return job_report::HtmlReport(job, read);
}

absl::StatusOr<std::string> ReportTextFromServer(const v1::Job& job,
                                                 ReportFormat format,
                                                 FarmClient& client) {
  OPTFARM_ASSIGN_OR_RETURN(std::string made,
                           MakeTemporaryFolder("optctl_report_"));
  const ScopedFolder folder(std::move(made));
  const std::string path = JoinPath(folder.path(), "file");
  const auto read =
      [&](const v1::Digest& digest) -> absl::StatusOr<std::string> {
    OPTFARM_RETURN_IF_ERROR(
        client.Download(digest, path, [](int64_t, int64_t) {}));
    return ReadFile(path);
  };
  return ReportText(job, format, read);
}

}  // namespace optfarm::client_cli
