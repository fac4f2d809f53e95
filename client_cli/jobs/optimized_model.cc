#include "client_cli/jobs/optimized_model.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/command/interrupt_cleanup.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/jobs/out_format.h"
#include "client_cli/jobs/progress_line.h"
#include "engine/export/export_optimized.h"

namespace optfarm::client_cli {
namespace {

const v1::ExportedModel* FindExport(const v1::Report& report,
                                    v1::ModelFormat format) {
  for (const v1::ExportedModel& made : report.exports()) {
    if (made.format() == format) return &made;
  }
  return nullptr;
}

// What the report says of the file of this format.
std::string SummaryOf(const v1::Report& report, v1::ModelFormat format) {
  const v1::ExportedModel* made = FindExport(report, format);
  return made == nullptr ? "" : made->summary();
}

bool IsText(const std::string& path) {
  const auto format = exporting::FormatOfPath(path);
  return format.ok() && *format == exporting::ModelFormat::kGraphText;
}

absl::Status DownloadTo(FarmClient* client, const v1::Artifact& artifact,
                        const std::string& to, const CommandContext& context) {
  ProgressLine progress(context);
  return Annotate(
      client->Download(artifact.digest(), to, progress.Bytes(artifact.name())),
      absl::StrCat("while downloading ", artifact.name()));
}

}  // namespace

const v1::Artifact* FindOptimized(const v1::Job& job, v1::ModelFormat format) {
  for (const v1::Artifact& artifact : job.artifacts()) {
    if (artifact.name() == exporting::OptimizedName(format)) return &artifact;
  }
  return nullptr;
}

absl::Status CheckFormatFits(const v1::Report& report, v1::ModelFormat format) {
  const v1::ExportedModel* made = FindExport(report, format);
  if (made == nullptr || !made->artifact().empty()) return absl::OkStatus();
  return WithExitCode(
      absl::FailedPreconditionError(
          absl::StrCat("the result cannot be written as ", FormatWord(format),
                       ":\n  ", absl::StrJoin(made->problems(), "\n  "))),
      ExitCode::kGateMissed);
}

absl::StatusOr<std::string> WriteOptimized(const std::string& folder,
                                           const v1::Report& report,
                                           v1::ModelFormat format,
                                           const std::string& to) {
  OPTFARM_RETURN_IF_ERROR(CheckFormatFits(report, format));
  const std::string graph = JoinPath(folder, exporting::OptimizedName(v1::PB));
  const std::string made = JoinPath(folder, exporting::OptimizedName(format));
  if (format == v1::PB && IsText(to)) {
    return exporting::ExportOptimized(graph, report,
                                      exporting::ModelFormat::kGraphText, to);
  }
  if (!FileSize(made).ok()) {
    return exporting::ExportOptimized(graph, report,
                                      exporting::ToFileFormat(format), to);
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(made));
  OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(to, bytes));
  return SummaryOf(report, format);
}

absl::StatusOr<std::string> FetchOptimized(FarmClient* client,
                                           const v1::Job& job,
                                           v1::ModelFormat format,
                                           const std::string& to,
                                           const CommandContext& context) {
  OPTFARM_RETURN_IF_ERROR(CheckFormatFits(job.report(), format));
  const v1::Artifact* made = FindOptimized(job, format);
  if (made != nullptr && !(format == v1::PB && IsText(to))) {
    OPTFARM_RETURN_IF_ERROR(DownloadTo(client, *made, to, context));
    return SummaryOf(job.report(), format);
  }
  const v1::Artifact* graph = FindOptimized(job, v1::PB);
  if (graph == nullptr) {
    return WithExitCode(
        absl::NotFoundError(absl::StrCat(
            "job ", job.job_id(), " is ", v1::JobState_Name(job.state()),
            " and has no optimized.pb",
            job.end_time().seconds() == 0 ? " yet" : "")),
        ExitCode::kNotFound);
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string folder,
                           MakeTemporaryFolder("optctl_model_"));
  const InterruptCleanup cleanup(folder);
  OPTFARM_RETURN_IF_ERROR(
      DownloadTo(client, *graph, JoinPath(folder, graph->name()), context));
  absl::StatusOr<std::string> line =
      WriteOptimized(folder, job.report(), format, to);
  if (!line.ok()) {
    return Annotate(line.status(),
                    absl::StrCat("while making ", FormatWord(format)));
  }
  return line;
}

}  // namespace optfarm::client_cli
