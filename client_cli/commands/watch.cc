// optctl watch: a job's events as they happen, until it has ended.

#include <limits>

#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/interrupt_cleanup.h"
#include "client_cli/command/job_ids.h"
#include "client_cli/commands/commands.h"
#include "client_cli/jobs/job_follow.h"
#include "client_cli/jobs/job_outcome.h"
#include "client_cli/tables/job_text.h"
#include "client_cli/tables/proto_json.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

class Watch final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("JOB", "The job's id, the beginning of one, or latest.",
                    &job_id_);
    flags->Integer("after", "Skip events up to this sequence number.", &after_,
                   0, std::numeric_limits<int64_t>::max());
    flags->Duration("timeout",
                    "Maximum time to watch; then exit with 124. The job "
                    "continues. Default: until the job ends.",
                    &timeout_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_RETURN_IF_ERROR(client->CheckServer());
    OPTFARM_ASSIGN_OR_RETURN(job_id_, FindJobId(*client, job_id_));
    const bool json = context.format == OutputFormat::kJson;
    if (context.format == OutputFormat::kCsv) {
      return UsageError(
          "watch has no CSV format; -o json prints one event per line");
    }
    FollowOptions options;
    options.after_sequence = after_;
    options.timeout = timeout_;
    options.clock = context.clock;
    options.on_event = [&context, json](const v1::JobEvent& event) {
      if (json) {
        *context.out << ProtoToJsonLine(event) << std::endl;
      } else if (const std::string text = EventText(event); !text.empty()) {
        *context.out << absl::FormatTime("%H:%M:%S",
                                         rpc::FromTimestamp(event.time()),
                                         absl::UTCTimeZone())
                     << " " << text << std::endl;
      }
    };
    const InterruptMessage message(GoesOnText(job_id_));
    RemarkOnWorkers(*client, *context.err);
    options.on_lost = [&context](const absl::Status& status) {
      *context.err << "Lost the connection to the server, retrying: "
                   << status.message() << std::endl;
    };
    OPTFARM_ASSIGN_OR_RETURN(v1::Job job,
                             FollowJob(client.get(), job_id_, options));
    if (!json) {
      *context.out << "\n"
                   << OutcomeText(OutcomeOf(job), context.format,
                                  context.color);
    }
    return ExitCodeOf(job);
  }

 private:
  std::string job_id_;
  int64_t after_ = 0;
  absl::Duration timeout_ = absl::InfiniteDuration();
};

}  // namespace

CommandInfo WatchCommand() {
  return {"watch", "Follow a job until it ends, then show its outcome.",
          "Times are UTC. After a lost connection the command resumes where "
          "it stopped. The exit code is that of submit --wait.\n"
          "-o json prints one event per line.",
          [] { return std::unique_ptr<Command>(new Watch); }};
}

}  // namespace optfarm::client_cli
