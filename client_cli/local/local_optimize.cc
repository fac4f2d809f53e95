#include "client_cli/local/local_optimize.h"

#include <algorithm>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "client_cli/jobs/progress_line.h"
#include "client_cli/local/step_times.h"
#include "engine/optimize/optimize_job.h"
#include "optfarm/v1/work.pb.h"

namespace optfarm::client_cli {
namespace {

// A v1::Completion: the report, or the failure with its status code's number
// in `code`.
std::string OutcomePath(const std::string& folder) {
  return JoinPath(folder, "outcome.pb");
}

optimize::OptimizeRequest MakeRequest(const JobRequest& request,
                                      const std::string& folder) {
  optimize::OptimizeRequest work = request.work;
  work.out_folder = FilesFolder(folder);
  work.tool_version = OPTFARM_VERSION;
  work.threads =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return work;
}

}  // namespace

std::string FilesFolder(const std::string& folder) {
  return JoinPath(folder, "files");
}

absl::Status OptimizeInto(const JobRequest& request, const std::string& folder,
                          bool verbose, const CommandContext& context) {
  OPTFARM_RETURN_IF_ERROR(MakeFolders(FilesFolder(folder)));
  absl::StatusOr<v1::Report> report;
  {
    ProgressLine line(context);
    StepTimes steps([&line](absl::string_view text) { line.Remark(text); });
    report = optimize::RunOptimize(
        MakeRequest(request, folder),
        [&](const optimize::OptimizeProgress& progress) {
          if (verbose) steps.Begin(progress.stage);
          line.Show(absl::StrFormat("optimize %.0f%% %s",
                                    progress.fraction * 100, progress.stage));
        });
    steps.End();
  }
  v1::Completion outcome;
  if (report.ok()) {
    *outcome.mutable_report() = *std::move(report);
  } else {
    outcome.mutable_failure()->set_code(
        absl::StrCat(static_cast<int>(report.status().code())));
    outcome.mutable_failure()->set_message(
        std::string(report.status().message()));
  }
  return WriteFileAtomically(OutcomePath(folder), outcome.SerializeAsString());
}

absl::StatusOr<v1::Report> OptimizeInChild(
    const std::vector<std::string>& words, const std::string& folder) {
  SubprocessOptions options;
  options.argv = words;
  options.argv.insert(options.argv.begin(), OwnProgramPath());
  OPTFARM_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Start(options));
  const auto exit = child.Wait(absl::InfiniteDuration());
  if (!exit || !exit->ok()) {
    return absl::InternalError(absl::StrCat(
        "the process that optimizes ended early: ",
        exit ? exit->ToString() : "no exit code",
        exit && exit->signal == 9 ? "; was there enough memory?" : ""));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           ReadFile(OutcomePath(folder)));
  v1::Completion outcome;
  if (!outcome.ParseFromString(bytes)) {
    return absl::InternalError("the process that optimizes left no outcome");
  }
  if (outcome.has_report()) return std::move(*outcome.mutable_report());
  int code = 0;
  if (!absl::SimpleAtoi(outcome.failure().code(), &code)) code = 0;
  const auto status = static_cast<absl::StatusCode>(code);
  return absl::Status(
      status == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : status,
      outcome.failure().message());
}

}  // namespace optfarm::client_cli
