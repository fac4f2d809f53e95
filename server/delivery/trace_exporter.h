// Sends the trace of each job and tune that has ended to a collector that
// speaks OTLP/HTTP.
//
// Best effort: what is to be sent is kept in memory, as the ids of jobs and the
// spans of tunes. It is tried again for an hour, and dropped, and counted, when
// the collector has been away for longer or when too much waits. No job waits
// for it.

#ifndef OPTFARM_SERVER_DELIVERY_TRACE_EXPORTER_H_
#define OPTFARM_SERVER_DELIVERY_TRACE_EXPORTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "http/cancellation.h"
#include "http/post.h"
#include "optfarm/v1/tunes.pb.h"
#include "server/delivery/job_trace.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

struct TraceExportOptions {
  // See TracesUrl in collector.h; empty: nothing is exported.
  std::string endpoint;
  std::vector<std::pair<std::string, std::string>> headers;
  // UNITS: jobs and tunes that wait to be sent; further ones are dropped.
  size_t max_waiting = 10'000;
  // Between two tries, when the collector does not say how long.
  absl::Duration first_pause = absl::Seconds(1);
  absl::Duration longest_pause = absl::Minutes(1);
  // What could not be sent for so long is dropped.
  absl::Duration patience = absl::Hours(1);
};

// THREADS: Start and Stop from one; all else is safe.
class TraceExporter {
 public:
  // OWNERSHIP: all outlive it.
  TraceExporter(TraceExportOptions options, storage::MetadataStore& store,
                Clock& clock);
  ~TraceExporter() { Stop(); }

  // ERRORS: InvalidArgument for an endpoint that is no address.
  absl::Status Start(TracedServer server);
  // Sends what waits, once and for two seconds at most, and drops the rest.
  void Stop();

  // A change became durable. Never waits for anything.
  void NoteCommit(const storage::WriteBatch& batch);
  // A tune has ended. The same.
  void NoteEnd(const v1::Tune& tune);

  // Whether anything is exported.
  bool is_on() const { return !options_.endpoint.empty(); }

  // What it has done so far, in Prometheus' text format; empty where nothing
  // is exported.
  std::string Metrics();

 private:
  // What became of a job's trace, as metrics call it.
  enum class Outcome { kSent, kQueueFull, kRefused, kGaveUp, kUnreadable };
  static constexpr size_t kOutcomes = 5;
  // The id of a job, or what a trace is made of already.
  using Waiting = std::variant<std::string, otlp::ExportTraceServiceRequest>;
  // What goes into one request.
  struct Batch {
    otlp::ExportTraceServiceRequest request;
    int64_t traces = 0;
  };
  struct Try {
    // OK; Unavailable: to be tried again; FailedPrecondition: not.
    absl::Status status;
    // When, if the collector says so.
    std::optional<absl::Duration> retry_after = std::nullopt;
  };

  // What the thread does.
  void SendAll();
  // Of what waits, as much as goes into one request; none: it is time to end.
  std::optional<Batch> TakeBatch();
  // False: none waits and, with `wait`, none will.
  bool TakeNext(bool wait, Waiting& next);
  void Add(Waiting trace);
  absl::StatusOr<otlp::ExportTraceServiceRequest> Read(Waiting trace);
  // Sends until it is taken, refused or too late.
  Outcome Send(const otlp::ExportTraceServiceRequest& batch);
  Try TryToSend(const std::string& body);
  void NoteAnswer(const std::string& body);
  void Count(Outcome outcome, int64_t traces);
  bool stopping();

  const TraceExportOptions options_;
  storage::MetadataStore& store_;
  Clock& clock_;
  TracedServer server_;
  http::Url url_;
  const std::shared_ptr<http::Cancellation> cancellation_ =
      std::make_shared<http::Cancellation>();
  absl::Mutex mutex_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  std::array<int64_t, kOutcomes> counts_ ABSL_GUARDED_BY(mutex_) = {};
  // UNITS: spans that the collector took the rest without.
  int64_t rejected_spans_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_TRACE_EXPORTER_H_
