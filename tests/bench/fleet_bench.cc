// One server and many simulated agents, each with a device of its own: what the
// server's process takes while they wait for work, while jobs are submitted,
// and while all of them report; with watchers of jobs, uploads and jobs that
// wait from the beginning if asked for. Not a test: nothing depends on how fast
// it is.
//
//   nice fleet_bench --folder=/big/disk/fleet --server_cpus=0,1
//   nice fleet_bench --folder=/big/disk/fleet --agents=10000 --jobs=20000
//        --waiting=1000000 --questions=200
//
// The server runs in a process of its own, so that its time and memory are told
// from those of the simulation.

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "optfarm/v1/jobs.grpc.pb.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "optfarm/v1/work.grpc.pb.h"
#include "rpc/blob_transfer.h"
#include "rpc/proto_time.h"
#include "rpc/status.h"
#include "server/scheduling/scheduling_policy.h"
#include "server/server.h"
#include "storage/sqlite/metadata_store.h"

namespace optfarm {
namespace {

constexpr int kCallsOfAConnection = 200;
// From the device of one job to that of the next, so that they are from all
// over the farm. A prime, so that all get as many.
constexpr int64_t kStep = 7919;
constexpr size_t kUploadBytes = 1 << 20;

struct Options {
  std::string folder;
  std::string server_cpus;
  int agents = 1000;
  int jobs_each = 10;
  int jobs = 0;
  int one_by_one = 0;
  int watchers = 0;
  int uploads = 0;
  int waiting = 0;
  int questions = 0;
  int task_seconds = 0;
  int samples = 100;
  int idle_seconds = 10;
  int poll_seconds = 5;
  int channels = 20;
};

// How long something took, each time.
class Times {
 public:
  void Add(absl::Duration time) {
    absl::MutexLock lock(&mutex_);
    ms_.push_back(absl::ToDoubleMilliseconds(time));
  }
  void Print(const char* what) {
    absl::MutexLock lock(&mutex_);
    if (ms_.empty()) return;
    std::sort(ms_.begin(), ms_.end());
    absl::PrintF("  %s: %d, median %.1f ms, p99 %.1f ms, longest %.1f ms\n",
                 what, ms_.size(), ms_[ms_.size() / 2],
                 ms_[ms_.size() * 99 / 100], ms_.back());
    std::fflush(stdout);
    ms_.clear();
  }

 private:
  absl::Mutex mutex_;
  std::vector<double> ms_ ABSL_GUARDED_BY(mutex_);
};

// What a process has used.
struct Usage {
  double cpu_seconds = 0;
  double resident_mib = 0;
};

Usage UsageOf(pid_t pid) {
  Usage usage;
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(stat, line);
  // The name, in brackets, may hold blanks.
  const std::vector<std::string> fields =
      absl::StrSplit(line.substr(line.rfind(')') + 2), ' ');
  int64_t pages = 0;
  if (fields.size() > 21 && absl::SimpleAtoi(fields[21], &pages)) {
    usage.resident_mib = static_cast<double>(pages) *
                         static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1048576;
  }
  clockid_t clock;
  timespec time;
  if (::clock_getcpuclockid(pid, &clock) == 0 &&
      ::clock_gettime(clock, &time) == 0) {
    usage.cpu_seconds = absl::ToDoubleSeconds(absl::DurationFromTimespec(time));
  }
  return usage;
}

std::string DataDir(const Options& options) {
  return JoinPath(options.folder, "data");
}

// The device that the job with this number asks for.
std::string DeviceOf(int64_t number, const Options& options) {
  return absl::StrCat("device", number * kStep % options.agents);
}

// A job whose model is optimized and that waits for its device, or for any.
void AddWaitingJob(int64_t number, const Options& options, absl::Time now,
                   storage::WriteBatch& batch) {
  storage::NewJob& added = batch.new_jobs.emplace_back();
  storage::JobRecord& job = added.job;
  job.job_id = absl::StrCat("waiting", number);
  job.create_time = now;
  job.spec.mutable_model()->set_name("model.pb");
  const std::string sha = Sha256Hex("model");
  job.spec.mutable_model()->mutable_digest()->set_sha256(sha);
  job.spec.mutable_recipe()->set_name("int8");
  job.spec.mutable_recipe()->set_transform_string("fold_constants");
  job.spec.add_tags("nightly");
  job.spec.add_tags(absl::StrCat("commit=", number / 1000));
  const std::string device =
      number % 2 == 0 ? DeviceOf(number, options) : "any:simulated";
  job.spec.mutable_benchmark()->add_devices(device);
  for (const v1::TaskKind kind : {v1::OPTIMIZE, v1::BENCHMARK}) {
    const bool optimize = kind == v1::OPTIMIZE;
    storage::TaskRecord& task = added.tasks.emplace_back();
    task.task_id = optimize ? server::OptimizeTaskId(job.job_id)
                            : server::BenchmarkTaskId(job.job_id, device);
    task.job_id = job.job_id;
    task.ordinal = optimize ? 0 : 1;
    task.kind = kind;
    task.state = optimize ? v1::TASK_DONE : v1::READY;
    if (!optimize) task.device = device;
    task.create_time = task.ready_time = now;
  }
  storage::ReportRecord& report = batch.reports.emplace_back();
  report.job_id = job.job_id;
  report.report.set_passed(true);
  report.report.mutable_optimized_model()->set_sha256(sha);
}

// Puts the jobs that wait from the beginning into the server's database.
absl::Status AddWaitingJobs(const Options& options) {
  constexpr int kTogether = 2000;
  const absl::Time now = absl::Now();
  OPTFARM_RETURN_IF_ERROR(MakeFolders(DataDir(options)));
  OPTFARM_ASSIGN_OR_RETURN(const auto store,
                           storage::OpenSqliteMetadataStore(
                               JoinPath(DataDir(options), "optfarm.db"), now));
  for (int done = 0; done < options.waiting;) {
    storage::WriteBatch batch;
    const int end = std::min(done + kTogether, options.waiting);
    for (; done < end; ++done) AddWaitingJob(done, options, now, batch);
    OPTFARM_RETURN_IF_ERROR(store->Commit(batch));
  }
  return absl::OkStatus();
}

// Whether it succeeds; this process stays without threads.
bool InAnotherProcess(const std::function<absl::Status()>& run) {
  const pid_t child = ::fork();
  if (child == 0) {
    const absl::Status status = run();
    if (!status.ok()) LogError(status.ToString());
    ::_exit(status.ok() ? 0 : 1);
  }
  int ended = 0;
  return child > 0 && ::waitpid(child, &ended, 0) == child && ended == 0;
}

// Runs the server until it is killed. Before it there is no thread.
[[noreturn]] void ServeForEver(const Options& options, int address_pipe) {
  if (!options.server_cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const auto cpu : absl::StrSplit(options.server_cpus, ',')) {
      int number = 0;
      if (absl::SimpleAtoi(cpu, &number)) CPU_SET(number, &set);
    }
    ::sched_setaffinity(0, sizeof(set), &set);
  }
  SetUpLog("server", LogLevel::kWarning);
  server::ServerOptions server;
  server.data_dir = DataDir(options);
  server.grpc_address = "127.0.0.1:0";
  server.scheduling.max_live_jobs = 2'000'000;
  server.scheduling.lease = absl::Minutes(5);
  server.watches.max_of_project = server.watches.max_watchers;
  auto started = server::Server::Start(server);
  if (!started.ok()) {
    LogError(started.status().ToString());
    ::_exit(1);
  }
  const std::string address = (*started)->address();
  if (::write(address_pipe, address.data(), address.size()) < 0) ::_exit(1);
  ::close(address_pipe);
  while (true) ::pause();
}

v1::Completion Measured(const std::string& device, const v1::Digest& model,
                        int samples) {
  v1::Completion completion;
  for (int i = 0; i < 4; ++i) {
    v1::Measurement& m = *completion.mutable_benchmark()->add_measurements();
    m.set_device(device);
    m.set_variant(i < 2 ? "float" : "int8");
    m.set_threads(i % 2 == 0 ? 1 : 4);
    *m.mutable_model() = model;
    for (int k = 0; k < samples; ++k) {
      m.add_samples_us(1000.0f + static_cast<float>(k * 7919 % 100));
    }
    m.set_runs(samples);
    m.set_median_us(1050);
    m.set_p90_us(1090);
    m.mutable_before()->set_cpu_model("Cortex-A76");
    m.mutable_before()->set_build_version("0.1.0");
    for (int k = 0; k < 20; ++k) {
      v1::OpTime& op = *m.add_op_times();
      op.set_op(absl::StrCat("Op", k));
      op.set_count(1);
      op.set_total_us(k);
    }
  }
  return completion;
}

// What all agents share.
struct Crowd {
  std::atomic<bool> ready = false;
  std::atomic<bool> stop = false;
  std::atomic<int64_t> calls = 0;
  std::atomic<int64_t> taken = 0;
  std::atomic<int64_t> refused = 0;
  std::atomic<int> under_way = 0;
  // From a report to its answer.
  Times reports;
  // From the call of an agent without work to a task.
  Times leases;
  // From an event to a watcher.
  Times deliveries;
  v1::Digest model;
  int samples = 0;
  absl::Duration task_time;
};

// Calls, is answered, calls again; reports a task at the first call after its
// time, by default the next one.
class Agent {
 public:
  Agent(std::shared_ptr<grpc::Channel> channel, int number, int poll_seconds,
        Crowd& crowd)
      : stub_(v1::WorkService::NewStub(std::move(channel))),
        device_(absl::StrCat("device", number)),
        spread_(0.5 + number % 100 / 100.0),
        crowd_(crowd) {
    request_.set_participant_id(absl::StrCat("agent", number));
    request_.set_name(request_.participant_id());
    request_.set_kind(v1::SynchronizeRequest::AGENT);
    v1::DeviceStatus& status = *request_.add_devices();
    status.mutable_info()->set_name(device_);
    status.mutable_info()->add_tags("simulated");
    // Not all at the same time.
    *request_.mutable_long_poll() =
        rpc::ToProtoDuration(absl::Seconds(poll_seconds) * spread_);
  }

  void Call() {
    context_ = std::make_unique<grpc::ClientContext>();
    request_.mutable_devices(0)->set_ready(crowd_.ready);
    response_.Clear();
    begin_ = absl::Now();
    reports_ = request_.held_size() > 0 && begin_ >= task_end_;
    if (reports_) {
      *request_.mutable_held(0)->mutable_completion() =
          Measured(device_, crowd_.model, crowd_.samples);
    }
    stub_->async()->Synchronize(
        context_.get(), &request_, &response_,
        [this](const grpc::Status& status) { Answered(status); });
  }

 private:
  void Answered(const grpc::Status& status) {
    ++crowd_.calls;
    if (reports_) {
      crowd_.reports.Add(absl::Now() - begin_);
    } else if (!response_.new_tasks().empty()) {
      crowd_.leases.Add(absl::Now() - begin_);
    }
    if (!status.ok()) ++crowd_.refused;
    for (const v1::TaskVerdict& verdict : response_.verdicts()) {
      if (verdict.verdict() == v1::TaskVerdict::CONTINUE) continue;
      ++(verdict.verdict() == v1::TaskVerdict::COMPLETION_ACCEPTED
             ? crowd_.taken
             : crowd_.refused);
      request_.clear_held();
    }
    for (const v1::LeasedTask& task : response_.new_tasks()) {
      v1::HeldTask& held = *request_.add_held();
      held.set_task_id(task.task_id());
      held.set_attempt(task.attempt());
      // Not all at the same time, again.
      task_end_ = absl::Now() + crowd_.task_time * spread_;
    }
    if (crowd_.stop) {
      --crowd_.under_way;
    } else {
      Call();
    }
  }

  const std::unique_ptr<v1::WorkService::Stub> stub_;
  const std::string device_;
  // Of the times that are the same for all.
  const double spread_;
  Crowd& crowd_;
  std::unique_ptr<grpc::ClientContext> context_;
  absl::Time begin_;
  absl::Time task_end_;
  // The open call does.
  bool reports_ = false;
  v1::SynchronizeRequest request_;
  v1::SynchronizeResponse response_;
};

// Hears of all that happens to a job from now on.
class Watcher final : public grpc::ClientReadReactor<v1::JobEvent> {
 public:
  Watcher(std::shared_ptr<grpc::Channel> channel, const std::string& job_id,
          Crowd& crowd)
      : stub_(v1::JobService::NewStub(std::move(channel))), crowd_(crowd) {
    request_.set_job_id(job_id);
    ++crowd_.under_way;
    stub_->async()->WatchJob(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }

  void End() { context_.TryCancel(); }
  // It has begun, or has been refused.
  bool heard() const { return heard_; }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    heard_ = true;
    const absl::Time time = rpc::FromTimestamp(event_.time());
    if (time >= begin_) crowd_.deliveries.Add(absl::Now() - time);
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    if (!status.ok() && status.error_code() != grpc::CANCELLED) {
      ++crowd_.refused;
    }
    heard_ = true;
    --crowd_.under_way;
  }

 private:
  const std::unique_ptr<v1::JobService::Stub> stub_;
  Crowd& crowd_;
  const absl::Time begin_ = absl::Now();
  std::atomic<bool> heard_ = false;
  grpc::ClientContext context_;
  v1::WatchJobRequest request_;
  v1::JobEvent event_;
};

absl::StatusOr<std::string> Submit(v1::JobService::Stub& jobs,
                                   const v1::Digest& model,
                                   const std::string& device) {
  grpc::ClientContext context;
  v1::SubmitJobRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  spec.mutable_model()->set_name("model.pb");
  *spec.mutable_model()->mutable_digest() = model;
  spec.mutable_recipe()->set_name("int8");
  spec.mutable_recipe()->set_transform_string("fold_constants");
  spec.mutable_benchmark()->add_devices(device);
  v1::SubmitJobResponse response;
  OPTFARM_RETURN_IF_ERROR(
      rpc::FromGrpc(jobs.SubmitJob(&context, request, &response)));
  return response.job().job_id();
}

// A worker that does the one optimize task; all other jobs take over its
// outcome.
absl::Status OptimizeOne(v1::WorkService::Stub& work, const v1::Digest& model) {
  v1::SynchronizeRequest request;
  request.set_participant_id("worker");
  request.set_name("worker");
  request.set_kind(v1::SynchronizeRequest::WORKER);
  request.set_build_version("1");
  request.set_free_slots(1);
  for (int call = 0; call < 2; ++call) {
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    OPTFARM_RETURN_IF_ERROR(
        rpc::FromGrpc(work.Synchronize(&context, request, &response)));
    for (const v1::LeasedTask& task : response.new_tasks()) {
      v1::HeldTask& held = *request.add_held();
      held.set_task_id(task.task_id());
      held.set_attempt(task.attempt());
      v1::Report& report = *held.mutable_completion()->mutable_report();
      report.set_passed(true);
      *report.mutable_optimized_model() = model;
    }
    request.set_free_slots(0);
  }
  return absl::OkStatus();
}

// What the server took in a phase.
struct Cost {
  double seconds = 0;
  double cpu_seconds = 0;
};

// Runs a phase and prints what it cost.
Cost Phase(const char* what, pid_t server, const Crowd& crowd,
           const std::function<void()>& run) {
  const Usage before = UsageOf(server);
  const int64_t calls = crowd.calls;
  const int64_t taken = crowd.taken;
  const absl::Time start = absl::Now();
  run();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const Usage after = UsageOf(server);
  absl::PrintF(
      "%-28s %6.1f s  %7.0f calls/s  %7.0f measurements/s  %5.2f CPUs  %6.0f "
      "MiB\n",
      what, seconds, static_cast<double>(crowd.calls - calls) / seconds,
      4.0 * static_cast<double>(crowd.taken - taken) / seconds,
      (after.cpu_seconds - before.cpu_seconds) / seconds, after.resident_mib);
  std::fflush(stdout);
  return {seconds, after.cpu_seconds - before.cpu_seconds};
}

// What each of `count` jobs took, besides what waiting costs meanwhile.
void PrintEach(const Cost& cost, const Cost& idle, int count) {
  if (count < 1) return;
  const double waiting = idle.cpu_seconds / idle.seconds * cost.seconds;
  absl::PrintF("  each: %.3f ms, %.3f ms of the server's processor\n",
               1e3 * cost.seconds / count,
               1e3 * (cost.cpu_seconds - waiting) / count);
}

// Uploads files of a megabyte, all at once.
absl::Status Upload(const std::vector<std::shared_ptr<grpc::Channel>>& channels,
                    int count) {
  Times times;
  absl::Mutex mutex;
  absl::Status status;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      const auto models = v1::ModelService::NewStub(
          channels[static_cast<size_t>(i) % channels.size()]);
      std::string bytes = absl::StrCat("file ", i);
      bytes.resize(kUploadBytes, 'x');
      const absl::Time begin = absl::Now();
      const auto id = rpc::UploadBytes(models.get(), bytes);
      times.Add(absl::Now() - begin);
      absl::MutexLock lock(&mutex);
      status.Update(id.status());
    });
  }
  for (std::thread& thread : threads) thread.join();
  times.Print("uploads");
  return status;
}

// Connections of their own, as machines would have, for so many calls at once.
std::vector<std::shared_ptr<grpc::Channel>> Connect(const std::string& address,
                                                    int least, int calls) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const int count = std::max(least, calls / kCallsOfAConnection + 1);
  for (int i = 0; i < count; ++i) {
    channels.push_back(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
  }
  return channels;
}

// Runs the phases one after the other.
class Bench {
 public:
  Bench(const Options& options, pid_t server, const std::string& address)
      : options_(options),
        server_(server),
        agents_channels_(Connect(address, options.channels, options.agents)),
        watchers_channels_(Connect(address, 1, options.watchers)),
        // Held calls would keep a submit waiting.
        own_(Connect(address, 1, 0)[0]),
        jobs_(v1::JobService::NewStub(own_)) {
    crowd_.samples = options.samples;
    crowd_.task_time = absl::Seconds(options.task_seconds);
  }

  absl::Status Run() {
    const auto models = v1::ModelService::NewStub(own_);
    OPTFARM_ASSIGN_OR_RETURN(crowd_.model,
                             rpc::UploadBytes(models.get(), "\x0a\x02\x0a"));
    Join();
    idle_ = Measure("agents wait for work", [&] {
      absl::SleepFor(absl::Seconds(options_.idle_seconds));
    });
    absl::Status status = SubmitAll();
    if (status.ok()) status = AskAboutJobs();
    if (status.ok() && options_.watchers > 0) Watch();
    if (status.ok()) Report();
    if (status.ok()) status = SubmitOneByOne();
    if (status.ok() && options_.uploads > 0) {
      Measure("files are uploaded",
              [&] { status = Upload(agents_channels_, options_.uploads); });
    }
    crowd_.stop = true;
    for (const auto& watcher : watchers_) watcher->End();
    while (crowd_.under_way > 0) absl::SleepFor(absl::Milliseconds(20));
    absl::PrintF("%d of %d tasks taken, %d refusals\n", crowd_.taken.load(),
                 submitted_, crowd_.refused.load());
    return status;
  }

 private:
  Cost Measure(const char* what, const std::function<void()>& run) {
    return Phase(what, server_, crowd_, run);
  }

  void Join() {
    Measure("agents join", [&] {
      for (int i = 0; i < options_.agents; ++i) {
        const size_t channel = static_cast<size_t>(i) % agents_channels_.size();
        agents_.push_back(std::make_unique<Agent>(
            agents_channels_[channel], i, options_.poll_seconds, crowd_));
        ++crowd_.under_way;
        agents_.back()->Call();
      }
      while (crowd_.calls < options_.agents) {
        absl::SleepFor(absl::Milliseconds(5));
      }
    });
  }

  absl::Status SubmitOne() {
    const absl::Time begin = absl::Now();
    OPTFARM_ASSIGN_OR_RETURN(
        std::string job_id,
        Submit(*jobs_, crowd_.model, DeviceOf(submitted_, options_)));
    submits_.Add(absl::Now() - begin);
    job_ids_.push_back(std::move(job_id));
    ++submitted_;
    return absl::OkStatus();
  }

  // The devices are not ready yet.
  absl::Status SubmitAll() {
    OPTFARM_RETURN_IF_ERROR(SubmitOne());
    const auto work = v1::WorkService::NewStub(own_);
    OPTFARM_RETURN_IF_ERROR(OptimizeOne(*work, crowd_.model));
    const int total = options_.jobs > 0 ? options_.jobs
                                        : options_.agents * options_.jobs_each;
    absl::Status status;
    const Cost cost = Measure("jobs are submitted", [&] {
      while (submitted_ < total && status.ok()) status = SubmitOne();
    });
    PrintEach(cost, idle_, total - 1);
    submits_.Print("submits");
    return status;
  }

  // About those that were submitted, behind all that waited before.
  absl::Status AskAboutJobs() {
    if (options_.questions < 1) return absl::OkStatus();
    Times gets;
    Times lists;
    absl::Status status;
    Measure("questions about jobs", [&] {
      for (int i = 0; i < options_.questions && status.ok(); ++i) {
        const size_t number = static_cast<size_t>(i) * kStep % job_ids_.size();
        status = Time(gets, [&](grpc::ClientContext& context) {
          v1::GetJobRequest request;
          request.set_job_id(job_ids_[number]);
          v1::Job job;
          return jobs_->GetJob(&context, request, &job);
        });
        if (!status.ok()) break;
        status = Time(lists, [&](grpc::ClientContext& context) {
          v1::ListJobsResponse response;
          return jobs_->ListJobs(&context, {}, &response);
        });
      }
    });
    gets.Print("a job, and why it waits");
    lists.Print("the newest jobs");
    return status;
  }

  static absl::Status Time(
      Times& times,
      const std::function<grpc::Status(grpc::ClientContext&)>& call) {
    grpc::ClientContext context;
    const absl::Time begin = absl::Now();
    const grpc::Status status = call(context);
    times.Add(absl::Now() - begin);
    return rpc::FromGrpc(status);
  }

  void Watch() {
    Measure("watchers join", [&] {
      for (int i = 0; i < options_.watchers; ++i) {
        const size_t number = static_cast<size_t>(i);
        watchers_.push_back(std::make_unique<Watcher>(
            watchers_channels_[number % watchers_channels_.size()],
            job_ids_[number % job_ids_.size()], crowd_));
      }
      for (const auto& watcher : watchers_) {
        while (!watcher->heard()) absl::SleepFor(absl::Milliseconds(5));
      }
    });
  }

  void WaitUntilTaken() {
    const absl::Time deadline = absl::Now() + absl::Minutes(5);
    while (crowd_.taken < submitted_ && absl::Now() < deadline) {
      absl::SleepFor(absl::Microseconds(200));
    }
  }

  void Report() {
    Measure("all agents report", [&] {
      crowd_.ready = true;
      WaitUntilTaken();
    });
    crowd_.leases.Print("calls that bring a task");
    crowd_.reports.Print("reports");
    crowd_.deliveries.Print("events to watchers");
  }

  // Each is submitted when the one before is measured.
  absl::Status SubmitOneByOne() {
    if (options_.one_by_one < 1) return absl::OkStatus();
    // All devices are ready when the last call from before has ended.
    absl::SleepFor(1.5 * absl::Seconds(options_.poll_seconds));
    absl::Status status;
    Times jobs;
    const Cost cost = Measure("jobs one after the other", [&] {
      for (int i = 0; i < options_.one_by_one && status.ok(); ++i) {
        const absl::Time begin = absl::Now();
        status = SubmitOne();
        WaitUntilTaken();
        jobs.Add(absl::Now() - begin);
      }
    });
    PrintEach(cost, idle_, options_.one_by_one);
    submits_.Print("submits");
    jobs.Print("from submit to result");
    return status;
  }

  const Options& options_;
  const pid_t server_;
  const std::vector<std::shared_ptr<grpc::Channel>> agents_channels_;
  const std::vector<std::shared_ptr<grpc::Channel>> watchers_channels_;
  const std::shared_ptr<grpc::Channel> own_;
  const std::unique_ptr<v1::JobService::Stub> jobs_;
  Crowd crowd_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  std::vector<std::string> job_ids_;
  int submitted_ = 0;
  Cost idle_;
  Times submits_;
};

}  // namespace
}  // namespace optfarm

int main(int argc, char** argv) {
  optfarm::Options options;
  CLI::App app("Measures one server with many simulated agents");
  app.add_option("--folder", options.folder, "Empty folder for the server")
      ->required();
  app.add_option("--server_cpus", options.server_cpus, "Cores of the server");
  app.add_option("--agents", options.agents, "Agents, one device each");
  app.add_option("--jobs_each", options.jobs_each, "Jobs for each device");
  app.add_option("--jobs", options.jobs, "Jobs in all, instead");
  app.add_option("--one_by_one", options.one_by_one,
                 "Jobs besides, each submitted when the one before is done");
  app.add_option("--watchers", options.watchers,
                 "Watchers of jobs while all agents report");
  app.add_option("--uploads", options.uploads, "Uploads at once, 1 MiB each");
  app.add_option("--waiting", options.waiting,
                 "Jobs that wait before the server starts");
  app.add_option("--questions", options.questions,
                 "Times that a job and a list of jobs are asked for");
  app.add_option("--task_seconds", options.task_seconds,
                 "How long an agent holds a task, about");
  app.add_option("--samples", options.samples, "Runs of each measurement");
  app.add_option("--idle_seconds", options.idle_seconds, "Time of waiting");
  app.add_option("--poll_seconds", options.poll_seconds,
                 "How long an agent has its call held, about");
  app.add_option("--channels", options.channels,
                 "Connections of the agents, at least one for 200");
  CLI11_PARSE(app, argc, argv);
  if (options.waiting > 0) {
    const absl::Time begin = absl::Now();
    if (!optfarm::InAnotherProcess(
            [&] { return optfarm::AddWaitingJobs(options); })) {
      return 1;
    }
    absl::PrintF("%d jobs put into the database in %.1f s\n", options.waiting,
                 absl::ToDoubleSeconds(absl::Now() - begin));
  }
  const absl::Time begin = absl::Now();
  int address_pipe[2];
  if (::pipe(address_pipe) != 0) return 1;
  const pid_t server = ::fork();
  if (server == 0) {
    ::close(address_pipe[0]);
    optfarm::ServeForEver(options, address_pipe[1]);
  }
  ::close(address_pipe[1]);
  std::string address(100, '\0');
  const ssize_t n = ::read(address_pipe[0], address.data(), address.size());
  if (server < 0 || n <= 0) return 1;
  address.resize(static_cast<size_t>(n));
  absl::PrintF("the server started in %.1f s, %.0f MiB\n",
               absl::ToDoubleSeconds(absl::Now() - begin),
               optfarm::UsageOf(server).resident_mib);
  const absl::Status status = optfarm::Bench(options, server, address).Run();
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
