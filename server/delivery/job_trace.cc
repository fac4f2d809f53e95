#include "server/delivery/job_trace.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "rpc/proto_time.h"
#include "rpc/trace_parent.h"
#include "server/conventions/task_events.h"
#include "server/scheduling/device_choice.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::MeasurementRecord;
using ::optfarm::storage::StoredJob;
using ::optfarm::storage::TaskRecord;

constexpr int kEventsARead = 1000;
constexpr int kMaxMeasurements = 1000;
// Of one attempt; a message that counts something would make any number.
constexpr size_t kMaxStages = 100;
constexpr int kMaxTransforms = 200;
constexpr absl::string_view kFailed = "failed";

void SetFailure(const v1::Failure& failure, otlp::Span& span) {
  Attributes(span.mutable_attributes()).Set("error.type", failure.code());
  span.mutable_status()->set_code(otlp::Status::STATUS_CODE_ERROR);
  span.mutable_status()->set_message(TraceText(failure.message()));
}

// What the events of a job tell of its tasks.
struct Stage {
  std::string name;
  // What its holder said first.
  std::string message;
  absl::Time start;
};

struct Attempt {
  int number = 0;
  std::string holder;
  absl::Time start;
  // InfinitePast: with its task.
  absl::Time end = absl::InfinitePast();
  std::string outcome;
  v1::Failure failure;
  std::vector<Stage> stages;
};

struct Wait {
  absl::Time start;
  // InfinitePast: with its task, which nobody took.
  absl::Time end = absl::InfinitePast();
};

struct TaskHistory {
  std::vector<Wait> waits;
  std::vector<Attempt> attempts;
};

// "waiting: 71 degrees" is the stage "waiting".
absl::string_view StageOf(absl::string_view message) {
  return absl::StripAsciiWhitespace(message.substr(0, message.find(':')));
}

void NoteProgress(const std::string& message, absl::Time time, Attempt& to) {
  const absl::string_view name = StageOf(message);
  if (name.empty() || to.stages.size() >= kMaxStages ||
      (!to.stages.empty() && to.stages.back().name == name)) {
    return;
  }
  to.stages.push_back({std::string(name), message, time});
}

// How an attempt ended, by what its task became then.
std::string OutcomeOf(const v1::TaskStateChange& change) {
  if (change.state() == v1::TASK_DONE) return "done";
  if (change.state() == v1::TASK_CANCELLED) return "cancelled";
  const bool is_released = absl::StartsWith(change.message(), kHandedBack);
  return is_released ? "released" : std::string(kFailed);
}

void NoteState(const v1::TaskStateChange& change, int attempt, absl::Time time,
               TaskHistory& task) {
  if (change.state() == v1::LEASED) {
    if (!task.waits.empty()) task.waits.back().end = time;
    Attempt& begun = task.attempts.emplace_back();
    begun.number = attempt;
    begun.holder = change.holder();
    begun.start = time;
    return;
  }
  if (!task.attempts.empty() && task.attempts.back().outcome.empty()) {
    Attempt& ended = task.attempts.back();
    ended.end = time;
    ended.outcome = OutcomeOf(change);
    if (ended.outcome == kFailed) ended.failure = change.failure();
  }
  if (change.state() == v1::READY) task.waits.push_back({time});
}

void Note(const v1::JobEvent& event, TaskHistory& task) {
  const absl::Time time = rpc::FromTimestamp(event.time());
  if (event.has_task_state()) {
    NoteState(event.task_state(), event.attempt(), time, task);
  } else if (event.has_progress() && !task.attempts.empty()) {
    NoteProgress(event.progress().message(), time, task.attempts.back());
  }
}

// All that a trace is made of.
struct History {
  StoredJob stored;
  std::optional<rpc::TraceParent> parent;
  std::map<std::string, TaskHistory> tasks;
  std::optional<v1::Report> report;
  std::vector<MeasurementRecord> measurements;
};

absl::Status ReadTasks(storage::MetadataStore& store, History& history) {
  const storage::JobRecord& job = history.stored.job;
  for (const TaskRecord& task : history.stored.tasks) {
    TaskHistory& made = history.tasks[task.task_id];
    // Ready from the beginning, of which no event tells; but what comes from
    // the cache waits for nobody.
    const bool is_cached = job.from_cache && task.kind == v1::OPTIMIZE;
    if (!is_cached && (job.from_cache || task.kind == v1::OPTIMIZE)) {
      made.waits.push_back({job.create_time});
    }
  }
  int64_t last = 0;
  while (true) {
    OPTFARM_ASSIGN_OR_RETURN(
        const std::vector<v1::JobEvent> events,
        store.ReadEvents(job.job_id, last, kEventsARead, /*with_logs=*/false));
    if (events.empty()) return absl::OkStatus();
    last = events.back().sequence();
    for (const v1::JobEvent& event : events) {
      const auto task = history.tasks.find(event.task_id());
      if (task != history.tasks.end()) Note(event, task->second);
    }
  }
}

absl::StatusOr<History> ReadHistory(storage::MetadataStore& store,
                                    const std::string& job_id) {
  History history;
  OPTFARM_ASSIGN_OR_RETURN(history.stored, store.GetJob(job_id));
  history.parent = ParentOf(history.stored.job.spec);
  if (history.parent && !history.parent->sampled) return history;
  OPTFARM_RETURN_IF_ERROR(ReadTasks(store, history));
  absl::StatusOr<v1::Report> report = store.GetReport(job_id);
  if (report.ok()) {
    history.report = *std::move(report);
  } else if (!absl::IsNotFound(report.status())) {
    return report.status();
  }
  storage::MeasurementFilter filter;
  filter.job_id = job_id;
  OPTFARM_ASSIGN_OR_RETURN(
      history.measurements,
      store.QueryMeasurements(filter, {0, kMaxMeasurements}));
  // Newest first; a trace tells them as they came.
  std::reverse(history.measurements.begin(), history.measurements.end());
  return history;
}

class TraceBuilder {
 public:
  TraceBuilder(const History& history, const TracedServer& server)
      : history_(history), job_(history.stored.job) {
    TraceIds own = TraceIdsOf(job_.job_id);
    trace_id_ = history.parent ? history.parent->trace_id : own.trace_id;
    root_id_ = std::move(own.span_id);
    server_ = &AddServer(server, trace_);
  }

  otlp::ExportTraceServiceRequest Build() && {
    AddJob();
    for (const TaskRecord& task : history_.stored.tasks) AddTask(task);
    return std::move(trace_);
  }

 private:
  using Spans = otlp::ScopeSpans;

  // Where the spans of one service instance go.
  Spans& ServiceAt(const std::string& name, const std::string& instance) {
    const auto [place, is_new] = services_.try_emplace({name, instance});
    if (is_new) place->second = &AddService(name, instance, trace_);
    return *place->second;
  }

  otlp::Span& AddSpan(Spans& to, absl::string_view name, std::string id,
                      const std::string& parent) {
    otlp::Span& span = *to.add_spans();
    span.set_trace_id(trace_id_);
    span.set_span_id(std::move(id));
    span.set_parent_span_id(parent);
    span.set_name(TraceText(name));
    span.set_kind(otlp::Span::SPAN_KIND_INTERNAL);
    span.set_flags(kSampledSpan | kParentKnown);
    return span;
  }

  void AddJob() {
    const v1::JobSpec& spec = job_.spec;
    otlp::Span& span =
        AddSpan(*server_, "job", root_id_,
                history_.parent ? history_.parent->span_id : std::string());
    span.set_kind(otlp::Span::SPAN_KIND_SERVER);
    if (history_.parent) span.set_flags(span.flags() | kParentRemote);
    SetTimes(job_.create_time, job_.end_time, span);
    Attributes(span.mutable_attributes())
        .Set("optfarm.job.id", job_.job_id)
        .Set("optfarm.job.name", spec.name())
        .Set("optfarm.job.state", v1::JobState_Name(job_.state))
        .Set("optfarm.project", job_.project)
        .Set("optfarm.recipe", spec.recipe().name())
        .Set("optfarm.model.name", spec.model().name())
        .Set("optfarm.model.sha256", spec.model().digest().sha256())
        .SetList("optfarm.tags", spec.tags())
        .Set("optfarm.cached_from", job_.cached_from_job_id);
    if (job_.state == v1::SUCCEEDED) {
      span.mutable_status()->set_code(otlp::Status::STATUS_CODE_OK);
    } else if (job_.state == v1::FAILED && job_.failure.has_value()) {
      SetFailure(*job_.failure, span);
    }
  }

  void AddTask(const TaskRecord& task) {
    const TaskHistory& history = history_.tasks.at(task.task_id);
    const std::string id = SpanIdOf(task.task_id);
    otlp::Span& span =
        AddSpan(*server_, absl::StrCat(KindOf(task), " task"), id, root_id_);
    // What its attempts, elsewhere, are to it is what a server is to a client.
    span.set_kind(otlp::Span::SPAN_KIND_CLIENT);
    // One that never became ready was a matter of the moment it ended.
    SetTimes(
        history.waits.empty() ? task.end_time : history.waits.front().start,
        task.end_time, span);
    Attributes(span.mutable_attributes())
        .Set("optfarm.job.id", job_.job_id)
        .Set("optfarm.task.id", task.task_id)
        .Set("optfarm.task.state", v1::TaskState_Name(task.state))
        .Set("optfarm.device", task.device)
        .SetInt("optfarm.task.attempts", task.attempt);
    if (task.state == v1::TASK_FAILED && task.failure.has_value()) {
      SetFailure(*task.failure, span);
    }
    for (size_t i = 0; i < history.waits.size(); ++i) {
      otlp::Span& waited =
          AddSpan(*server_, "wait",
                  SpanIdOf(absl::StrCat(task.task_id, "/wait/", i)), id);
      SetTimes(history.waits[i].start, EndOf(history.waits[i], task), waited);
    }
    for (const Attempt& attempt : history.attempts) {
      AddAttempt(task, attempt, id);
    }
  }

  static std::string KindOf(const TaskRecord& task) {
    return task.kind == v1::OPTIMIZE ? "optimize" : "benchmark";
  }

  template <typename Part>
  static absl::Time EndOf(const Part& part, const TaskRecord& task) {
    return part.end == absl::InfinitePast() ? task.end_time : part.end;
  }

  // The worker, or the device whose agent it was.
  Spans& WhereOf(const TaskRecord& task, const Attempt& attempt) {
    if (task.kind == v1::OPTIMIZE) {
      return ServiceAt("optfarm-worker", attempt.holder);
    }
    const std::string device =
        attempt.number == task.attempt
            ? task.device
            : std::string(AskedDeviceOfTask(task.task_id));
    // Of a pool's task only the last device is known.
    return ServiceAt("optfarm-agent",
                     PoolOf(device).has_value() ? attempt.holder : device);
  }

  void AddAttempt(const TaskRecord& task, const Attempt& attempt,
                  const std::string& parent) {
    Spans& where = WhereOf(task, attempt);
    const std::string name =
        absl::StrCat(task.task_id, "/attempt/", attempt.number);
    const absl::Time end = EndOf(attempt, task);
    otlp::Span& span = AddSpan(where, absl::StrCat(KindOf(task), " attempt"),
                               SpanIdOf(name), parent);
    span.set_kind(otlp::Span::SPAN_KIND_SERVER);
    span.set_flags(span.flags() | kParentRemote);
    SetTimes(attempt.start, end, span);
    Attributes(span.mutable_attributes())
        .Set("optfarm.job.id", job_.job_id)
        .Set("optfarm.task.id", task.task_id)
        .SetInt("optfarm.attempt", attempt.number)
        .Set("optfarm.outcome", attempt.outcome)
        .Set("optfarm.holder", attempt.holder);
    if (attempt.outcome == kFailed) SetFailure(attempt.failure, span);
    if (attempt.outcome == "done") AddOutcome(task, end, span);
    for (size_t i = 0; i < attempt.stages.size(); ++i) {
      const Stage& stage = attempt.stages[i];
      otlp::Span& part =
          AddSpan(where, stage.name, SpanIdOf(absl::StrCat(name, "/stage/", i)),
                  SpanIdOf(name));
      SetTimes(
          stage.start,
          i + 1 < attempt.stages.size() ? attempt.stages[i + 1].start : end,
          part);
      if (stage.message == stage.name) continue;
      Attributes(part.mutable_attributes())
          .Set("optfarm.message", stage.message);
    }
  }

  // What its holder measured itself, whose clock is another: events of the
  // moment at which the server was told.
  void AddOutcome(const TaskRecord& task, absl::Time end, otlp::Span& span) {
    if (task.kind == v1::OPTIMIZE && history_.report.has_value()) {
      const auto& transforms = history_.report->transforms();
      for (int i = 0; i < std::min(transforms.size(), kMaxTransforms); ++i) {
        Attributes(AddEvent("transform", end, span).mutable_attributes())
            .Set("optfarm.transform", transforms[i].name())
            .SetDouble("optfarm.seconds", transforms[i].seconds())
            .SetInt("optfarm.nodes_before", transforms[i].nodes_before())
            .SetInt("optfarm.nodes_after", transforms[i].nodes_after());
      }
    }
    for (const MeasurementRecord& record : history_.measurements) {
      if (record.task_id != task.task_id) continue;
      const v1::Measurement& measured = record.measurement;
      Attributes(AddEvent("measurement", end, span).mutable_attributes())
          .Set("optfarm.variant", measured.variant())
          .SetInt("optfarm.threads", measured.threads())
          .SetInt("optfarm.runs", measured.runs())
          .SetDouble("optfarm.median_us", measured.median_us())
          .SetDouble("optfarm.p90_us", measured.p90_us())
          .SetBool("optfarm.noisy", measured.noisy());
    }
  }

  static otlp::Span::Event& AddEvent(const std::string& name, absl::Time time,
                                     otlp::Span& span) {
    otlp::Span::Event& event = *span.add_events();
    event.set_name(name);
    event.set_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(time)));
    return event;
  }

  const History& history_;
  const storage::JobRecord& job_;
  std::string trace_id_;
  std::string root_id_;
  otlp::ExportTraceServiceRequest trace_;
  // By name and instance; parts of trace_.
  std::map<std::pair<std::string, std::string>, Spans*> services_;
  Spans* server_ = nullptr;
};

}  // namespace

absl::StatusOr<otlp::ExportTraceServiceRequest> ReadJobTrace(
    storage::MetadataStore& store, const std::string& job_id,
    const TracedServer& server) {
  OPTFARM_ASSIGN_OR_RETURN(const History history, ReadHistory(store, job_id));
  if (history.parent && !history.parent->sampled) {
    return otlp::ExportTraceServiceRequest();
  }
  return TraceBuilder(history, server).Build();
}

}  // namespace optfarm::server
