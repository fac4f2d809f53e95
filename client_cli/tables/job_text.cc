#include "client_cli/tables/job_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/human_units.h"
#include "client_cli/tables/results_table.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

Cell SecondsCell(const v1::Job& job) {
  if (!job.has_start_time() || !job.has_end_time()) return Cell();
  const absl::Duration took =
      rpc::FromTimestamp(job.end_time()) - rpc::FromTimestamp(job.start_time());
  return Cell(absl::ToDoubleSeconds(took), HumanDuration(took));
}

// As TimeCell; for people without the year and the seconds.
Cell ShortTimeCell(const google::protobuf::Timestamp& timestamp) {
  Cell cell = TimeCell(timestamp);
  if (cell.text != "-") {
    cell.text = absl::FormatTime("%m-%d %H:%M", rpc::FromTimestamp(timestamp),
                                 absl::UTCTimeZone());
  }
  return cell;
}

// "yes 1.80x": the answer, and how much faster.
Cell VerdictCell(const v1::Job& job) {
  const v1::ShippingVerdict* verdict = MainVerdict(job);
  if (verdict == nullptr) return Cell();
  const std::string answer = absl::AsciiStrToLower(
      v1::ShippingVerdict::Answer_Name(verdict->answer()));
  const bool decided = verdict->answer() != v1::ShippingVerdict::UNCLEAR;
  return Cell(answer,
              decided && verdict->has_speedup()
                  ? absl::StrFormat("%s %.3gx", answer, verdict->speedup())
                  : answer);
}

Cell VerdictTextCell(const v1::Job& job) {
  const v1::ShippingVerdict* verdict = MainVerdict(job);
  if (verdict == nullptr) return Cell();
  return Cell::Text(VerdictLine(*verdict));
}

std::string FailureText(const v1::Failure& failure) {
  return absl::StrCat(failure.code(), failure.message().empty() ? "" : ": ",
                      failure.message());
}

// The server's sentence about a change names its holder and attempt.
std::string StateChangeText(const v1::TaskStateChange& change) {
  std::string text = TaskStateName(change.state());
  if (!change.message().empty()) {
    absl::StrAppend(&text, ": ", change.message());
  } else if (!change.holder().empty()) {
    absl::StrAppend(&text, " by ", change.holder());
  }
  if (change.has_failure()) {
    absl::StrAppend(&text, ": ", FailureText(change.failure()));
  }
  return text;
}

// "optimize" of "j17/optimize": the reader knows the job.
absl::string_view ShortTaskId(absl::string_view task_id) {
  const size_t slash = task_id.find('/');
  return slash == absl::string_view::npos ? task_id : task_id.substr(slash + 1);
}

}  // namespace

Cell TimeCell(const google::protobuf::Timestamp& timestamp) {
  const absl::Time time = rpc::FromTimestamp(timestamp);
  if (time <= absl::UnixEpoch()) return Cell();
  return Cell(absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone()),
              HumanTime(time));
}

std::string TaskTitle(const v1::Task& task) {
  if (task.kind() == v1::BENCHMARK) {
    return absl::StrCat("benchmark on ", task.device());
  }
  return "optimize";
}

std::string TaskStateName(v1::TaskState state) {
  return std::string(absl::StripPrefix(v1::TaskState_Name(state), "TASK_"));
}

std::string RecipeName(const v1::JobSpec& spec) {
  return spec.has_recipe() ? spec.recipe().name() : spec.recipe_name();
}

Table MakeJobsTable(const std::vector<v1::Job>& jobs) {
  using enum Table::Align;
  Table table({{"job_id", "JOB"},
               {"state", "STATE"},
               {"recipe", "RECIPE", kLeft, false, 12},
               {"model", "MODEL", kLeft, false, 14},
               {"model_sha256", "SHA-256", kLeft, true},
               {"devices", "DEVICES", kLeft, true},
               {"create_time", "CREATED (UTC)"},
               {"seconds", "TOOK", kRight, true},
               {"name", "NAME", kLeft, true},
               {"verdict", "VERDICT"},
               {"verdict_text", "WHY", kLeft, true}});
  for (const v1::Job& job : jobs) {
    const std::string& sha256 = job.spec().model().digest().sha256();
    table.AddRow(
        {Cell::Text(job.job_id()), Cell::Text(v1::JobState_Name(job.state())),
         Cell::Text(RecipeName(job.spec())),
         Cell::Text(job.spec().model().name()),
         Cell(sha256, sha256.substr(0, 12)),
         Cell::Text(absl::StrJoin(job.spec().benchmark().devices(), ",")),
         ShortTimeCell(job.create_time()), SecondsCell(job),
         Cell::Text(job.spec().name()), VerdictCell(job),
         VerdictTextCell(job)});
  }
  return table;
}

Table MakeTasksTable(const v1::Job& job) {
  constexpr Table::Align kLeft = Table::Align::kLeft;
  Table table({{"task_id", "TASK", kLeft, true},
               {"task", "WHAT", kLeft, false, 28},
               {"state", "STATE"},
               {"holder", "HOLDER", kLeft, false, 12},
               {"attempt", "ATTEMPT", Table::Align::kRight, true},
               {"failed_attempts", "FAILED", Table::Align::kRight},
               {"progress", "PROGRESS", Table::Align::kRight},
               {.name = "note", .title = "NOTE", .folds = true}});
  for (const v1::Task& task : job.tasks()) {
    table.AddRow({Cell::Text(task.task_id()), Cell::Text(TaskTitle(task)),
                  Cell::Text(TaskStateName(task.state())),
                  Cell::Text(task.holder()), Cell::Integer(task.attempt()),
                  Cell(int64_t{task.failed_attempts()},
                       absl::StrCat(task.failed_attempts(), " of ",
                                    task.max_attempts())),
                  Cell(task.progress(),
                       absl::StrFormat("%.0f%%", task.progress() * 100)),
                  Cell::Text(task.has_failure() ? FailureText(task.failure())
                                                : task.progress_message())});
  }
  return table;
}

std::string EventText(const v1::JobEvent& event) {
  std::string text;
  switch (event.event_case()) {
    case v1::JobEvent::kJobState:
      text = absl::StrCat("job ", v1::JobState_Name(event.job_state().state()));
      if (!event.job_state().failure().message().empty()) {
        absl::StrAppend(&text, ": ", event.job_state().failure().message());
      }
      break;
    case v1::JobEvent::kTaskState:
      text = absl::StrCat(ShortTaskId(event.task_id()), " ",
                          StateChangeText(event.task_state()));
      break;
    case v1::JobEvent::kProgress:
      text = absl::StrFormat("%s %.0f%% %s", ShortTaskId(event.task_id()),
                             event.progress().fraction() * 100,
                             event.progress().message());
      break;
    case v1::JobEvent::kLog:
    case v1::JobEvent::EVENT_NOT_SET:
      break;
  }
  return PrintableLine(text);
}

}  // namespace optfarm::client_cli
