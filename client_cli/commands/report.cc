// optctl report: a job as a file for people.

#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/job_ids.h"
#include "client_cli/commands/commands.h"
#include "client_cli/jobs/job_outcome.h"
#include "client_cli/jobs/report_file.h"

namespace optfarm::client_cli {
namespace {

class Report final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("JOB", "The job's id, the beginning of one, or latest.",
                    &job_id_);
    flags->Path("out", "FILE",
                "Where to write the report. Default: standard output.", &out_);
    flags->Writes();
    flags->Choice("format",
                  "One HTML file without links to anything, or Markdown for a "
                  "pull request. Default: as the name of --out ends, and md "
                  "without --out.",
                  {"html", "md"}, &format_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    // Before the server is asked.
    if (!out_.empty()) {
      OPTFARM_RETURN_IF_ERROR(CheckReportPlace("--out", out_));
    }
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(job_id_, FindJobId(*client, job_id_));
    OPTFARM_ASSIGN_OR_RETURN(v1::Job job, client->GetJob(job_id_));
    const JobOutcome outcome = OutcomeOf(std::move(job));
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string text,
        ReportTextFromServer(outcome.job, Format(), *client));
    if (out_.empty()) {
      *context.out << text;
    } else {
      OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(out_, text));
      *context.err << "Written to " << out_ << ".\n";
    }
    return ExitCode::kOk;
  }

 private:
  ReportFormat Format() const {
    if (format_ == "html") return ReportFormat::kHtml;
    if (format_ == "md" || out_.empty()) return ReportFormat::kMarkdown;
    return ReportFormatOf(out_);
  }

  std::string job_id_, out_, format_;
};

}  // namespace

CommandInfo ReportCommand() {
  return {"report", "Write a job's report as one HTML file, or as Markdown.",
          "The HTML file has all that the web page shows of the job and needs "
          "no network; it opens in any browser and prints. Markdown is for a "
          "comment on a pull request. The exit code is 0 whether the job "
          "succeeded or not.\n"
          "  optctl report latest --out=report.html\n"
          "  optctl report latest --format=md",
          [] { return std::unique_ptr<Command>(new Report); }};
}

}  // namespace optfarm::client_cli
