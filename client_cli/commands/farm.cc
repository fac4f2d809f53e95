// optctl workers, projects and store: the farm as administrators see it.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/proto_json.h"
#include "client_cli/tables/table.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

// "12 of 100", or "12" without a limit.
Cell CountCell(int64_t count, int64_t limit) {
  return Cell(count, limit > 0 ? absl::StrCat(count, " of ", limit)
                               : absl::StrCat(count));
}

Cell LimitCell(int64_t limit) {
  return limit > 0 ? Cell::Integer(limit) : Cell();
}

class Workers final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {}

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    Table table({{"kind", "KIND"},
                 {"name", "NAME"},
                 {"participant_id", "PROCESS", Table::Align::kLeft, true},
                 {"build_version", "VERSION"},
                 {"tasks", "TASKS", Table::Align::kRight},
                 {"first_seen", "UP", Table::Align::kRight},
                 {"last_seen", "SEEN", Table::Align::kRight}});
    v1::ListParticipantsRequest request;
    do {
      OPTFARM_ASSIGN_OR_RETURN(const v1::ListParticipantsResponse page,
                               client->ListParticipants(request));
      for (const v1::Participant& one : page.participants()) {
        AddRow(one, context.clock->Now(), table);
      }
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    if (table.rows().empty() && context.format == OutputFormat::kTable) {
      *context.out << "No worker or agent has called within the last hour. Run "
                      "optfarm-worker --server=HOST:PORT to add a worker.\n";
      return ExitCode::kOk;
    }
    *context.out << table.ToFormat(context.format);
    return ExitCode::kOk;
  }

 private:
  static void AddRow(const v1::Participant& one, absl::Time now, Table& table) {
    const auto ago = [&](const google::protobuf::Timestamp& timestamp) {
      const absl::Time time = rpc::FromTimestamp(timestamp);
      return Cell(
          absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone()),
          HumanDuration(std::max(now - time, absl::ZeroDuration())));
    };
    Cell seen = ago(one.last_seen());
    absl::StrAppend(&seen.text, " ago");
    table.AddRow(
        {Cell::Text(one.kind() == v1::Participant::WORKER ? "worker" : "agent"),
         Cell::Text(one.name()), Cell::Text(one.participant_id()),
         Cell::Text(one.build_version()), Cell::Integer(one.tasks()),
         ago(one.first_seen()), seen});
  }
};

class Projects final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {}

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    using enum Table::Align;
    Table table({{"name", "PROJECT", kLeft, false, 24},
                 {"bytes", "FILES", kRight},
                 {"max_bytes", "MAX FILES", kRight, true},
                 {"live_jobs", "LIVE JOBS", kRight},
                 {"max_live_jobs", "MAX LIVE", kRight, true},
                 {"jobs_a_day", "JOBS IN 24 H", kRight},
                 {"max_jobs_a_day", "MAX IN 24 H", kRight, true},
                 {"max_calls_per_second", "MAX CALLS/S", kRight, true},
                 {"tokens", "TOKENS", kRight},
                 {"own_limits", "LIMITS"}});
    v1::ListProjectsRequest request;
    do {
      OPTFARM_ASSIGN_OR_RETURN(const v1::ListProjectsResponse page,
                               client->ListProjects(request));
      for (const v1::Project& project : page.projects()) {
        AddRow(project, table);
      }
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    if (table.rows().empty() && context.format == OutputFormat::kTable) {
      *context.out << "No project has jobs, files or tokens yet.\n";
      return ExitCode::kOk;
    }
    *context.out << table.ToFormat(context.format);
    return ExitCode::kOk;
  }

 private:
  static void AddRow(const v1::Project& project, Table& table) {
    const std::string bytes = HumanBytes(project.bytes());
    table.AddRow(
        {Cell::Text(project.name()),
         Cell(project.bytes(),
              project.max_bytes() > 0
                  ? absl::StrCat(bytes, " of ", HumanBytes(project.max_bytes()))
                  : bytes),
         LimitCell(project.max_bytes()),
         CountCell(project.live_jobs(), project.max_live_jobs()),
         LimitCell(project.max_live_jobs()),
         CountCell(project.jobs_a_day(), project.max_jobs_a_day()),
         LimitCell(project.max_jobs_a_day()),
         project.max_calls_per_second() > 0
             ? Cell(project.max_calls_per_second(),
                    absl::StrFormat("%g", project.max_calls_per_second()))
             : Cell(),
         Cell::Integer(project.tokens()),
         Cell(project.own_limits(),
              project.own_limits() ? "its own" : "as all")});
  }
};

class Store final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {}

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const v1::StoreUsage usage,
                             client->GetStoreUsage());
    if (context.format == OutputFormat::kTable) {
      *context.out << Describe(usage);
    } else if (context.format == OutputFormat::kJson) {
      *context.out << ProtoToJson(usage);
    } else {
      return UsageError("optctl store has no rows; give -o json or -o yaml");
    }
    return ExitCode::kOk;
  }

 private:
  static std::string Describe(const v1::StoreUsage& usage) {
    std::string text = absl::StrCat(
        "Files      ", usage.blobs(), ", ", HumanBytes(usage.blob_bytes()),
        usage.max_bytes() > 0
            ? absl::StrCat(" of ", HumanBytes(usage.max_bytes()))
            : std::string(),
        ", in a ", usage.blob_engine() == "s3" ? "bucket" : "folder", "\n");
    absl::StrAppend(&text, "Uploads    ", HumanBytes(usage.staged_bytes()),
                    " not complete\n");
    if (usage.has_free_bytes()) {
      absl::StrAppend(&text, "Disk       ", HumanBytes(usage.free_bytes()),
                      " free\n");
    }
    absl::StrAppend(&text, "Eviction   ",
                    !usage.evicts()
                        ? "never: the server runs without --max_store_bytes"
                    : usage.evictions() == 0
                        ? "nothing since the server started"
                        : absl::StrCat(HumanBytes(usage.evicted_bytes()),
                                       " in ", usage.evictions(),
                                       " rounds since the server started"),
                    "\n", "Database   ", usage.database_engine(), "\n");
    return text;
  }
};

}  // namespace

CommandInfo WorkersCommand() {
  return {"workers", "List the workers and agents that have called lately.",
          "Those of the last hour, with the tasks that they hold. Requires a "
          "token with scope admin, or the server's own.",
          [] { return std::unique_ptr<Command>(new Workers); }};
}

CommandInfo ProjectsCommand() {
  return {"projects", "List the projects, what they use and what they may.",
          "Requires a token with scope admin, or the server's own. -o wide "
          "has the limits as columns.",
          [] { return std::unique_ptr<Command>(new Projects); }};
}

CommandInfo StoreCommand() {
  return {"store", "Show how much the server stores and what it evicted.",
          "Requires a token with scope admin, or the server's own.",
          [] { return std::unique_ptr<Command>(new Store); }};
}

}  // namespace optfarm::client_cli
