// optctl audit: who did what on the server.

#include <algorithm>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

constexpr int kPage = 500;

class Audit final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Text("actor", "NAME", "Only calls with the token of this name.",
                &actor_);
    flags->Text("project", "NAME", "Only calls with this project's tokens.",
                &project_);
    flags->Text("method", "METHOD",
                "Only calls of this method, such as JobService.SubmitJob.",
                &method_);
    flags->Duration("since", "Only calls within this duration, such as 24h.",
                    &since_);
    flags->Integer("limit", "Maximum number of calls. Default: 100.", &limit_,
                   1, 100000);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    v1::ListAuditRequest request;
    request.set_actor(actor_);
    request.set_project(project_);
    request.set_method(method_);
    if (since_ > absl::ZeroDuration()) {
      *request.mutable_from_time() =
          rpc::ToTimestamp(context.clock->Now() - since_);
    }
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    v1::ListAuditResponse all;
    do {
      const int64_t left = limit_ - all.entries_size();
      request.set_page_size(static_cast<int>(std::min<int64_t>(left, kPage)));
      OPTFARM_ASSIGN_OR_RETURN(v1::ListAuditResponse page,
                               client->ListAudit(request));
      all.mutable_entries()->MergeFrom(page.entries());
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty() && all.entries_size() < limit_);
    Print(context, all);
    return ExitCode::kOk;
  }

 private:
  static void Print(const CommandContext& context,
                    const v1::ListAuditResponse& all) {
    constexpr Table::Align kLeft = Table::Align::kLeft;
    const bool short_times =
        context.format == OutputFormat::kTable && !context.format.wide;
    Table table({{"time", short_times ? "TIME (UTC)" : "TIME"},
                 {"actor", "ACTOR", kLeft, false, 10},
                 {"token_id", "TOKEN", kLeft, true},
                 {"project", "PROJECT", kLeft, true},
                 {"peer", "FROM", kLeft, true},
                 {"method", "METHOD", kLeft, false, 24},
                 {"subject", "ON", kLeft, false, 12},
                 {"outcome", "OUTCOME"},
                 {"message", "MESSAGE", kLeft, true}});
    for (const v1::AuditEntry& entry : all.entries()) {
      table.AddRow({Cell::Text(absl::FormatTime(
                        short_times ? "%m-%d %H:%M:%S" : absl::RFC3339_sec,
                        rpc::FromTimestamp(entry.time()), absl::UTCTimeZone())),
                    Cell::Text(entry.actor()), Cell::Text(entry.token_id()),
                    Cell::Text(entry.project()), Cell::Text(entry.peer()),
                    Cell::Text(entry.method()), Cell::Text(entry.subject()),
                    Cell::Text(entry.outcome()), Cell::Text(entry.message())});
    }
    *context.out << table.ToFormat(context.format);
  }

  std::string actor_, project_, method_;
  absl::Duration since_;
  int64_t limit_ = 100;
};

}  // namespace

CommandInfo AuditCommand() {
  return {"audit", "Show the server's audit log, newest first.",
          "Lists calls that change or fetch something, and rejected calls. "
          "Requires a token with scope admin, or the server's own.\n"
          "  optctl audit --project=vision --since=24h",
          [] { return std::unique_ptr<Command>(new Audit); }};
}

}  // namespace optfarm::client_cli
