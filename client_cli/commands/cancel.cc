// optctl cancel: ends a job.

#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/job_ids.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/job_text.h"

namespace optfarm::client_cli {
namespace {

class Cancel final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("JOB", "The job's id, the beginning of one, or latest.",
                    &job_id_);
    flags->Text("reason", "TEXT", "The reason, for others who look at the job.",
                &reason_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(job_id_, FindJobId(*client, job_id_));
    v1::CancelJobRequest request;
    request.set_job_id(job_id_);
    request.set_reason(reason_);
    OPTFARM_ASSIGN_OR_RETURN(v1::Job job, client->CancelJob(request));
    if (context.format != OutputFormat::kTable) {
      *context.out << MakeJobsTable({job}).ToFormat(context.format);
      return ExitCode::kOk;
    }
    *context.out << "Job " << job.job_id() << " is "
                 << v1::JobState_Name(job.state())
                 << (job.state() == v1::CANCELLED ? ".\n"
                                                  : "; it had ended before.\n");
    return ExitCode::kOk;
  }

 private:
  std::string job_id_, reason_;
};

}  // namespace

CommandInfo CancelCommand() {
  return {"cancel", "Cancel a job.",
          "Has no effect on a job that has ended; that is not an error.",
          [] { return std::unique_ptr<Command>(new Cancel); }};
}

}  // namespace optfarm::client_cli
