// optctl get: everything about one job.

#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/job_ids.h"
#include "client_cli/commands/commands.h"
#include "client_cli/jobs/job_follow.h"
#include "client_cli/jobs/job_outcome.h"
#include "client_cli/tables/job_text.h"
#include "client_cli/tables/proto_json.h"

namespace optfarm::client_cli {
namespace {

class Get final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("JOB", "The job's id, the beginning of one, or latest.",
                    &job_id_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(job_id_, FindJobId(*client, job_id_));
    OPTFARM_ASSIGN_OR_RETURN(v1::Job job, client->GetJob(job_id_));
    switch (context.format) {
      case OutputFormat::kJson:
        *context.out << ProtoToJson(job);
        break;
      case OutputFormat::kCsv:
        *context.out << MakeJobsTable({job}).ToCsv();
        break;
      case OutputFormat::kTable:
        *context.out << MakeJobsTable({job}).ToFormat(context.format) << "\n"
                     << MakeTasksTable(job).ToFormat(context.format) << "\n";
        if (HasEnded(job.state())) {
          *context.out << OutcomeText(OutcomeOf(std::move(job)), context.format,
                                      context.color);
        }
        break;
    }
    return ExitCode::kOk;
  }

 private:
  std::string job_id_;
};

}  // namespace

CommandInfo GetCommand() {
  return {
      "get", "Show a job: its tasks and, once it has ended, its outcome.",
      "The exit code is 0 whether the job succeeded or not; watch returns the "
      "outcome as its exit code.\n"
      "-o json prints everything the server knows.",
      [] { return std::unique_ptr<Command>(new Get); }};
}

}  // namespace optfarm::client_cli
