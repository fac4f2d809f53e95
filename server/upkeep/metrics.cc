#include "server/upkeep/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/synchronization/mutex.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// Names of transforms come from workers: no more of them become labels.
constexpr size_t kMaxTransforms = 200;
constexpr char kOther[] = "other";

const Histogram::BucketBoundaries& CommitSeconds() {
  static const auto& bounds = *new Histogram::BucketBoundaries{
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5};
  return bounds;
}

const Histogram::BucketBoundaries& TransformSeconds() {
  static const auto& bounds = *new Histogram::BucketBoundaries{
      0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800};
  return bounds;
}

std::string Lower(const std::string& name) {
  return absl::AsciiStrToLower(name);
}

// For what is counted elsewhere.
void CountUpTo(int64_t total, Counter& counter) {
  counter.Increment(static_cast<double>(total) - counter.Value());
}

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  Family<Gauge>& queue = prometheus::BuildGauge()
                             .Name("optfarm_queue_tasks")
                             .Help("Tasks that wait to be leased")
                             .Register(registry);
  Family<Gauge>& age = prometheus::BuildGauge()
                           .Name("optfarm_queue_oldest_seconds")
                           .Help("How long the oldest of them has waited")
                           .Register(registry);
  Family<Gauge>& leased = prometheus::BuildGauge()
                              .Name("optfarm_leased_tasks")
                              .Help("Tasks that are being worked on")
                              .Register(registry);
  Family<Gauge>& live = prometheus::BuildGauge()
                            .Name("optfarm_live_jobs")
                            .Help("Jobs that have not ended")
                            .Register(registry);
  Family<Gauge>& devices = prometheus::BuildGauge()
                               .Name("optfarm_devices")
                               .Help("Devices by state")
                               .Register(registry);
  Family<Gauge>& held = prometheus::BuildGauge()
                            .Name("optfarm_held_calls")
                            .Help("Calls of workers and agents that wait")
                            .Register(registry);
  Family<Counter>& looks =
      prometheus::BuildCounter()
          .Name("optfarm_held_call_looks_total")
          .Help("How often a call that waits was looked at for news")
          .Register(registry);
  Family<Counter>& task_looks =
      prometheus::BuildCounter()
          .Name("optfarm_task_looks_total")
          .Help("How often a task was looked at for who asked for work")
          .Register(registry);
  Family<Counter>& device_looks =
      prometheus::BuildCounter()
          .Name("optfarm_device_looks_total")
          .Help("How often a device was looked at for a change of its state")
          .Register(registry);
  Family<Counter>& submitted = prometheus::BuildCounter()
                                   .Name("optfarm_jobs_submitted_total")
                                   .Help("Jobs accepted")
                                   .Register(registry);
  Family<Counter>& ended = prometheus::BuildCounter()
                               .Name("optfarm_jobs_ended_total")
                               .Help("Jobs that ended, by how")
                               .Register(registry);
  Family<Counter>& cached =
      prometheus::BuildCounter()
          .Name("optfarm_cache_hits_total")
          .Help("Jobs answered from an earlier one's report")
          .Register(registry);
  Family<Counter>& attempts = prometheus::BuildCounter()
                                  .Name("optfarm_attempts_ended_total")
                                  .Help("Leases that ended, by how")
                                  .Register(registry);
  Family<Counter>& expired =
      prometheus::BuildCounter()
          .Name("optfarm_lease_expiries_total")
          .Help("Leases lost because their holder fell silent")
          .Register(registry);
  Family<Counter>& retries =
      prometheus::BuildCounter()
          .Name("optfarm_retries_total")
          .Help("Tasks that wait to be tried again after a failure")
          .Register(registry);
  Family<Counter>& measurements = prometheus::BuildCounter()
                                      .Name("optfarm_measurements_total")
                                      .Help("Measurements taken in")
                                      .Register(registry);
  Family<Histogram>& transforms = prometheus::BuildHistogram()
                                      .Name("optfarm_transform_seconds")
                                      .Help("Time of transforms in workers")
                                      .Register(registry);
  Family<Histogram>& commits =
      prometheus::BuildHistogram()
          .Name("optfarm_db_commit_seconds")
          .Help("Time until a change of jobs was durable")
          .Register(registry);

  absl::Mutex mutex;
  std::set<std::string> transform_names ABSL_GUARDED_BY(mutex);

  // `name`, or what stands for all names beyond the first so many.
  std::string TransformLabel(const std::string& name) {
    absl::MutexLock lock(&mutex);
    if (transform_names.count(name) > 0) return name;
    if (transform_names.size() >= kMaxTransforms) return kOther;
    transform_names.insert(name);
    return name;
  }
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {
  // Known from the beginning, so that a rate has something to start from.
  families_->submitted.Add({});
  families_->cached.Add({});
  families_->expired.Add({});
  families_->retries.Add({});
  families_->measurements.Add({});
  for (const v1::JobState state : {v1::SUCCEEDED, v1::FAILED, v1::CANCELLED}) {
    families_->ended.Add({{"state", Lower(v1::JobState_Name(state))}});
  }
}

Metrics::~Metrics() = default;

void Metrics::NoteCommit(const storage::WriteBatch& batch,
                         absl::Duration time) {
  Families& f = *families_;
  f.commits.Add({}, CommitSeconds()).Observe(absl::ToDoubleSeconds(time));
  const auto note_end = [&f](const storage::JobRecord& job) {
    if (!HasEnded(job.state)) return;
    f.ended.Add({{"state", Lower(v1::JobState_Name(job.state))}}).Increment();
  };
  for (const storage::NewJob& job : batch.new_jobs) {
    f.submitted.Add({}).Increment();
    if (job.job.from_cache) f.cached.Add({}).Increment();
    note_end(job.job);
  }
  for (const storage::JobRecord& job : batch.jobs) note_end(job);
  for (const storage::TaskUpdate& update : batch.tasks) {
    if (update.expected_state == v1::LEASED && update.task.state == v1::READY &&
        update.task.failure.has_value()) {
      f.retries.Add({}).Increment();
    }
  }
  for (const storage::AttemptRecord& attempt : batch.attempts) {
    if (attempt.end_time == absl::InfinitePast()) continue;
    f.attempts.Add({{"outcome", attempt.outcome}}).Increment();
    if (attempt.outcome == "lost") f.expired.Add({}).Increment();
  }
  for (const storage::ReportRecord& report : batch.reports) {
    for (const v1::TransformStats& stats : report.report.transforms()) {
      f.transforms
          .Add({{"transform", f.TransformLabel(stats.name())}},
               TransformSeconds())
          .Observe(stats.seconds());
    }
  }
  f.measurements.Add({}).Increment(
      static_cast<double>(batch.measurements.size()));
}

std::string Metrics::Text(const QueueNumbers& queue,
                          const std::map<v1::Device::State, int>& devices,
                          const LongPolls::Counts& polls) {
  Families& f = *families_;
  f.held.Add({}).Set(static_cast<double>(polls.held));
  CountUpTo(polls.looks, f.looks.Add({}));
  CountUpTo(queue.task_looks, f.task_looks.Add({}));
  CountUpTo(queue.device_looks, f.device_looks.Add({}));
  f.live.Add({{"state", "queued"}}).Set(queue.queued_jobs);
  f.live.Add({{"state", "running"}}).Set(queue.running_jobs);
  for (const v1::TaskKind kind : {v1::OPTIMIZE, v1::BENCHMARK}) {
    const QueueNumbers::Kind& tasks =
        kind == v1::OPTIMIZE ? queue.optimize : queue.benchmark;
    const prometheus::Labels labels = {
        {"kind", Lower(v1::TaskKind_Name(kind))}};
    f.queue.Add(labels).Set(tasks.ready);
    f.leased.Add(labels).Set(tasks.leased);
    f.age.Add(labels).Set(absl::ToDoubleSeconds(tasks.oldest));
  }
  for (int state = 1; state < v1::Device::State_ARRAYSIZE; ++state) {
    const auto named = static_cast<v1::Device::State>(state);
    if (!v1::Device::State_IsValid(state)) continue;
    const auto count = devices.find(named);
    f.devices.Add({{"state", Lower(v1::Device::State_Name(named))}})
        .Set(count == devices.end() ? 0 : count->second);
  }
  return prometheus::TextSerializer().Serialize(f.registry.Collect());
}

}  // namespace optfarm::server
