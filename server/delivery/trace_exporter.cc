#include "server/delivery/trace_exporter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/conventions/log_text.h"
#include "server/delivery/collector.h"
#include "server/delivery/job_trace.h"
#include "server/delivery/tune_trace.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::server {
namespace {

constexpr absl::Duration kSendLimit = absl::Seconds(10);
constexpr absl::Duration kLastSendLimit = absl::Seconds(2);
// However long a collector says that it wants to be left alone.
constexpr absl::Duration kLongestRetryAfter = absl::Minutes(10);
// UNITS: traces, and bytes, that one request has at least before it is full.
constexpr int64_t kTracesARequest = 32;
constexpr size_t kRequestBytes = size_t{1} << 20;
constexpr size_t kMaxAnswerBytes = size_t{64} << 10;
constexpr size_t kMaxMessageBytes = 300;
// What OTLP/HTTP says to try again after.
constexpr int kRetryable[] = {429, 502, 503, 504};
// In the order of TraceExporter::Outcome.
constexpr const char* kOutcomeNames[] = {"sent", "queue_full", "refused",
                                         "gave_up", "unreadable"};

// Servers that lost the same collector do not all come back at once.
absl::Duration Jittered(absl::Duration pause) {
  absl::BitGen random;
  return pause * absl::Uniform(random, 0.8, 1.2);
}

}  // namespace

TraceExporter::TraceExporter(TraceExportOptions options,
                             storage::MetadataStore& store, Clock& clock)
    : options_(std::move(options)), store_(store), clock_(clock) {}

absl::Status TraceExporter::Start(TracedServer server) {
  if (options_.endpoint.empty()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(url_, TracesUrl(options_.endpoint));
  server_ = std::move(server);
  thread_ = std::thread([this] { SendAll(); });
  return absl::OkStatus();
}

void TraceExporter::Stop() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    mutex_.AwaitWithTimeout(absl::Condition(&done_), kLastSendLimit);
  }
  cancellation_->Cancel();
  thread_.join();
  absl::MutexLock lock(&mutex_);
  if (waiting_.empty()) return;
  LogWarning("the traces of ", waiting_.size(),
             " jobs and tunes were not sent to ", url_.Authority(),
             " before the server stopped");
}

void TraceExporter::NoteCommit(const storage::WriteBatch& batch) {
  if (!is_on()) return;
  const auto note = [this](const storage::JobRecord& job) {
    if (HasEnded(job.state)) Add(job.job_id);
  };
  for (const storage::NewJob& job : batch.new_jobs) note(job.job);
  for (const storage::JobRecord& job : batch.jobs) note(job);
}

void TraceExporter::NoteEnd(const v1::Tune& tune) {
  if (is_on()) Add(TuneTrace(tune, server_));
}

void TraceExporter::Add(Waiting trace) {
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() < options_.max_waiting) {
    waiting_.push_back(std::move(trace));
  } else {
    ++counts_[static_cast<size_t>(Outcome::kQueueFull)];
  }
}

std::string TraceExporter::Metrics() {
  if (options_.endpoint.empty()) return "";
  absl::MutexLock lock(&mutex_);
  std::string text = absl::StrCat(
      "# HELP optfarm_traces_waiting Jobs and tunes whose trace is still to be "
      "sent\n"
      "# TYPE optfarm_traces_waiting gauge\n"
      "optfarm_traces_waiting ",
      waiting_.size(),
      "\n# HELP optfarm_traces_total Traces of ended jobs and tunes, by what "
      "became of them\n"
      "# TYPE optfarm_traces_total counter\n");
  for (size_t i = 0; i < kOutcomes; ++i) {
    absl::StrAppend(&text, "optfarm_traces_total{outcome=\"", kOutcomeNames[i],
                    "\"} ", counts_[i], "\n");
  }
  absl::StrAppend(
      &text,
      "# HELP optfarm_trace_spans_rejected_total Spans that the collector "
      "would not take of traces that it took\n"
      "# TYPE optfarm_trace_spans_rejected_total counter\n"
      "optfarm_trace_spans_rejected_total ",
      rejected_spans_, "\n");
  return text;
}

void TraceExporter::SendAll() {
  while (std::optional<Batch> batch = TakeBatch()) {
    if (batch->traces == 0) continue;
    const Outcome outcome = Send(batch->request);
    Count(outcome, batch->traces);
    absl::MutexLock lock(&mutex_);
    // What fails now would fail again at once.
    if (stopping_ && outcome == Outcome::kGaveUp) break;
  }
  absl::MutexLock lock(&mutex_);
  done_ = true;
}

bool TraceExporter::TakeNext(bool wait, Waiting& next) {
  absl::MutexLock lock(&mutex_);
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !waiting_.empty();
  };
  if (wait) mutex_.Await(absl::Condition(&something));
  if (waiting_.empty()) return false;
  next = std::move(waiting_.front());
  waiting_.pop_front();
  return true;
}

absl::StatusOr<otlp::ExportTraceServiceRequest> TraceExporter::Read(
    Waiting trace) {
  if (auto* made = std::get_if<otlp::ExportTraceServiceRequest>(&trace)) {
    return std::move(*made);
  }
  const std::string& job_id = std::get<std::string>(trace);
  absl::StatusOr<otlp::ExportTraceServiceRequest> read =
      ReadJobTrace(store_, job_id, server_);
  if (read.ok()) return read;
  return Annotate(read.status(),
                  absl::StrCat("reading the trace of job ", job_id));
}

std::optional<TraceExporter::Batch> TraceExporter::TakeBatch() {
  Waiting next;
  if (!TakeNext(/*wait=*/true, next)) return std::nullopt;
  Batch batch;
  do {
    absl::StatusOr<otlp::ExportTraceServiceRequest> trace =
        Read(std::move(next));
    if (!trace.ok()) {
      LogWarning(trace.status().message());
      Count(Outcome::kUnreadable, 1);
      continue;
    }
    // Of a caller that records nothing.
    if (trace->resource_spans().empty()) continue;
    for (otlp::ResourceSpans& spans : *trace->mutable_resource_spans()) {
      *batch.request.add_resource_spans() = std::move(spans);
    }
    ++batch.traces;
  } while (batch.traces < kTracesARequest &&
           batch.request.ByteSizeLong() < kRequestBytes &&
           TakeNext(/*wait=*/false, next));
  return batch;
}

TraceExporter::Outcome TraceExporter::Send(
    const otlp::ExportTraceServiceRequest& batch) {
  const std::string body = batch.SerializeAsString();
  const absl::Time begin = clock_.Now();
  absl::Duration pause = options_.first_pause;
  bool told = false;
  while (true) {
    const Try tried = TryToSend(body);
    if (tried.status.ok()) {
      if (told) LogInfo("traces reach ", url_.Authority(), " again");
      return Outcome::kSent;
    }
    const bool refused = absl::IsFailedPrecondition(tried.status);
    const absl::Duration wait = tried.retry_after.value_or(Jittered(pause));
    pause = std::min(2 * pause, options_.longest_pause);
    const bool late = clock_.Now() + wait - begin > options_.patience;
    if (refused || late || stopping()) {
      LogWarning("traces for ", url_.Authority(),
                 " are dropped: ", tried.status.message());
      return refused ? Outcome::kRefused : Outcome::kGaveUp;
    }
    if (!std::exchange(told, true)) {
      LogWarning("sending traces to ", url_.Authority(),
                 " failed: ", tried.status.message(), "; trying again for ",
                 absl::FormatDuration(options_.patience));
    }
    absl::MutexLock lock(&mutex_);
    clock_.AwaitWithTimeout(&mutex_, absl::Condition(&stopping_), wait);
  }
}

TraceExporter::Try TraceExporter::TryToSend(const std::string& body) {
  http::PostRequest request;
  request.url = url_;
  request.content_type = "application/x-protobuf";
  request.body = body;
  request.headers = options_.headers;
  request.limit = kSendLimit;
  request.cancellation = cancellation_;
  const absl::StatusOr<http::PostReply> reply =
      http::PostForReply(request, kMaxAnswerBytes);
  if (!reply.ok()) return {absl::UnavailableError(reply.status().message())};
  if (reply->status >= 200 && reply->status < 300) {
    NoteAnswer(reply->body);
    return {absl::OkStatus()};
  }
  const std::string answer =
      absl::StrCat("the collector answered with status ", reply->status);
  if (!absl::c_linear_search(kRetryable, reply->status)) {
    return {absl::FailedPreconditionError(answer)};
  }
  Try again{absl::UnavailableError(answer)};
  if (reply->retry_after.has_value()) {
    again.retry_after = std::min(*reply->retry_after, kLongestRetryAfter);
  }
  return again;
}

// A collector may take a part alone, or warn.
void TraceExporter::NoteAnswer(const std::string& body) {
  otlp::ExportTraceServiceResponse answer;
  // In JSON, perhaps; it was taken all the same.
  if (!answer.ParseFromString(body) || !answer.has_partial_success()) return;
  const otlp::ExportTracePartialSuccess& partial = answer.partial_success();
  const int64_t rejected = std::max<int64_t>(partial.rejected_spans(), 0);
  if (rejected == 0 && partial.error_message().empty()) return;
  LogWarning("the collector at ", url_.Authority(), " rejected ", rejected,
             " spans: ", CutText(partial.error_message(), kMaxMessageBytes));
  absl::MutexLock lock(&mutex_);
  rejected_spans_ += rejected;
}

void TraceExporter::Count(Outcome outcome, int64_t traces) {
  absl::MutexLock lock(&mutex_);
  counts_[static_cast<size_t>(outcome)] += traces;
}

bool TraceExporter::stopping() {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

}  // namespace optfarm::server
