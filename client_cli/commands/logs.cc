// optctl logs: what a job's tasks printed.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/job_ids.h"
#include "client_cli/commands/commands.h"
#include "client_cli/jobs/job_follow.h"
#include "client_cli/tables/job_text.h"
#include "client_cli/tables/proto_json.h"

namespace optfarm::client_cli {
namespace {

class Logs final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("JOB", "The job's id, the beginning of one, or latest.",
                    &job_id_);
    flags->Text("task", "TASK", "Only this task's log (optctl get shows them).",
                &task_);
    flags->Switch("follow", "Continue until the job ends.", &follow_);
    flags->Letter("f");
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    if (context.format == OutputFormat::kCsv) {
      return UsageError(
          "logs has no CSV format; -o json prints one event per line");
    }
    OPTFARM_RETURN_IF_ERROR(client->CheckServer());
    OPTFARM_ASSIGN_OR_RETURN(job_id_, FindJobId(*client, job_id_));
    OPTFARM_RETURN_IF_ERROR(CheckTask(client.get()));
    const auto print = [this, &context](const v1::JobEvent& event) {
      Print(event, context);
    };
    if (!follow_) {
      v1::WatchJobRequest request;
      request.set_job_id(job_id_);
      request.set_no_follow(true);
      OPTFARM_RETURN_IF_ERROR(
          client->WatchJob(request, absl::InfiniteDuration(), print));
      if (speaker_.empty() && context.format == OutputFormat::kTable) {
        *context.err << "The tasks have printed nothing.\n";
      }
      return ExitCode::kOk;
    }
    FollowOptions options;
    options.no_logs = false;
    options.clock = context.clock;
    options.on_event = print;
    OPTFARM_RETURN_IF_ERROR(FollowJob(client.get(), job_id_, options).status());
    return ExitCode::kOk;
  }

 private:
  absl::Status CheckTask(FarmClient* client) {
    if (task_.empty()) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(v1::Job job, client->GetJob(job_id_));
    std::string known;
    for (const v1::Task& task : job.tasks()) {
      if (task.task_id() == task_) return absl::OkStatus();
      absl::StrAppend(&known, known.empty() ? "" : ", ", task.task_id());
    }
    return WithExitCode(
        absl::NotFoundError(absl::StrCat("job ", job_id_, " has no task '",
                                         task_, "'; it has ", known)),
        ExitCode::kNotFound);
  }

  // Marks where another task or attempt begins to speak.
  void Print(const v1::JobEvent& event, const CommandContext& context) {
    if (event.event_case() != v1::JobEvent::kLog) return;
    if (!task_.empty() && event.task_id() != task_) return;
    if (context.format == OutputFormat::kJson) {
      *context.out << ProtoToJsonLine(event) << std::endl;
      return;
    }
    const std::string speaker =
        absl::StrCat(event.task_id(), ", attempt ", event.attempt());
    if (speaker != speaker_) {
      *context.out << (at_line_start_ ? "" : "\n") << "--- " << speaker
                   << " ---\n";
      speaker_ = speaker;
      at_line_start_ = true;
    }
    const std::string& text = event.log().text();
    *context.out << PrintableText(text) << std::flush;
    if (!text.empty()) at_line_start_ = text.back() == '\n';
  }

  std::string job_id_, task_;
  bool follow_ = false;
  std::string speaker_;
  bool at_line_start_ = true;
};

}  // namespace

CommandInfo LogsCommand() {
  return {"logs", "Print the output of a job's tasks.", "",
          [] { return std::unique_ptr<Command>(new Logs); }};
}

}  // namespace optfarm::client_cli
