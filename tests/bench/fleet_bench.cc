// One server and many simulated agents, each with a device of its own: what the
// server's process takes while they wait for work, and how many measurements it
// makes durable while all of them report. Not a test: nothing depends on how
// fast it is.
//
//   nice fleet_bench --folder=/big/disk/fleet --server_cpus=0,1
//
// The server runs in a process of its own, so that its time and memory are told
// from those of the simulation.

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "optfarm/v1/jobs.grpc.pb.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "optfarm/v1/work.grpc.pb.h"
#include "rpc/blob_transfer.h"
#include "rpc/status.h"
#include "server/server.h"

namespace optfarm {
namespace {

constexpr int kAgentsOfAConnection = 200;

struct Options {
  std::string folder;
  std::string server_cpus;
  int agents = 1000;
  int jobs_each = 10;
  int samples = 100;
  int idle_seconds = 10;
  int channels = 20;
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
  int64_t user = 0, system = 0, pages = 0;
  if (fields.size() > 21 && absl::SimpleAtoi(fields[11], &user) &&
      absl::SimpleAtoi(fields[12], &system) &&
      absl::SimpleAtoi(fields[21], &pages)) {
    usage.cpu_seconds = static_cast<double>(user + system) /
                        static_cast<double>(::sysconf(_SC_CLK_TCK));
    usage.resident_mib = static_cast<double>(pages) *
                         static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1048576;
  }
  return usage;
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
  server.data_dir = JoinPath(options.folder, "data");
  server.grpc_address = "127.0.0.1:0";
  server.scheduling.max_live_jobs = 1'000'000;
  server.scheduling.lease = absl::Minutes(5);
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
  v1::Digest model;
  int samples = 0;
};

// Calls, is answered, calls again; completes a task the moment it gets it.
class Agent {
 public:
  Agent(std::shared_ptr<grpc::Channel> channel, int number, Crowd& crowd)
      : stub_(v1::WorkService::NewStub(std::move(channel))),
        device_(absl::StrCat("device", number)),
        crowd_(crowd) {
    request_.set_participant_id(absl::StrCat("agent", number));
    request_.set_name(request_.participant_id());
    request_.set_kind(v1::SynchronizeRequest::AGENT);
    v1::DeviceStatus& status = *request_.add_devices();
    status.mutable_info()->set_name(device_);
    status.mutable_info()->add_tags("simulated");
    request_.mutable_long_poll()->set_seconds(5);
  }

  void Call() {
    context_ = std::make_unique<grpc::ClientContext>();
    request_.mutable_devices(0)->set_ready(crowd_.ready);
    response_.Clear();
    stub_->async()->Synchronize(
        context_.get(), &request_, &response_,
        [this](const grpc::Status& status) { Answered(status); });
  }

 private:
  void Answered(const grpc::Status& status) {
    ++crowd_.calls;
    request_.clear_held();
    if (!status.ok()) ++crowd_.refused;
    for (const v1::TaskVerdict& verdict : response_.verdicts()) {
      ++(verdict.verdict() == v1::TaskVerdict::COMPLETION_ACCEPTED
             ? crowd_.taken
             : crowd_.refused);
    }
    for (const v1::LeasedTask& task : response_.new_tasks()) {
      v1::HeldTask& held = *request_.add_held();
      held.set_task_id(task.task_id());
      held.set_attempt(task.attempt());
      *held.mutable_completion() =
          Measured(device_, crowd_.model, crowd_.samples);
    }
    if (crowd_.stop) {
      --crowd_.under_way;
    } else {
      Call();
    }
  }

  const std::unique_ptr<v1::WorkService::Stub> stub_;
  const std::string device_;
  Crowd& crowd_;
  std::unique_ptr<grpc::ClientContext> context_;
  v1::SynchronizeRequest request_;
  v1::SynchronizeResponse response_;
};

absl::Status Submit(v1::JobService::Stub& jobs, const v1::Digest& model,
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
  return rpc::FromGrpc(jobs.SubmitJob(&context, request, &response));
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

// Runs a phase and prints what the server took in it.
void Phase(const char* what, pid_t server, const Crowd& crowd,
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
}

absl::Status Run(const Options& options, pid_t server,
                 const std::string& address) {
  Crowd crowd;
  crowd.samples = options.samples;
  // One for each and one for what is not an agent's: a connection has so many
  // calls at a time, and held ones would keep a submit waiting.
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  const int agents_channels =
      std::max(options.channels, options.agents / kAgentsOfAConnection + 1);
  for (int i = 0; i <= agents_channels; ++i) {
    grpc::ChannelArguments arguments;
    // Connections of their own, as machines would have.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channels.push_back(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
  }
  const auto models = v1::ModelService::NewStub(channels.back());
  const auto jobs = v1::JobService::NewStub(channels.back());
  const auto work = v1::WorkService::NewStub(channels.back());
  OPTFARM_ASSIGN_OR_RETURN(crowd.model,
                           rpc::UploadBytes(models.get(), "\x0a\x02\x0a"));
  std::vector<std::unique_ptr<Agent>> agents;
  Phase("agents join", server, crowd, [&] {
    for (int i = 0; i < options.agents; ++i) {
      agents.push_back(std::make_unique<Agent>(
          channels[static_cast<size_t>(i % agents_channels)], i, crowd));
      ++crowd.under_way;
      agents.back()->Call();
    }
    while (crowd.calls < options.agents) absl::SleepFor(absl::Milliseconds(5));
  });
  Phase("agents wait for work", server, crowd,
        [&] { absl::SleepFor(absl::Seconds(options.idle_seconds)); });
  absl::Status status = Submit(*jobs, crowd.model, "device0");
  if (status.ok()) status = OptimizeOne(*work, crowd.model);
  const int total = options.agents * options.jobs_each;
  Phase("jobs are submitted", server, crowd, [&] {
    for (int i = 1; i < total && status.ok(); ++i) {
      status = Submit(*jobs, crowd.model,
                      absl::StrCat("device", i % options.agents));
    }
  });
  Phase("all agents report", server, crowd, [&] {
    crowd.ready = true;
    const absl::Time deadline = absl::Now() + absl::Minutes(5);
    while (status.ok() && crowd.taken < total && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(5));
    }
  });
  crowd.stop = true;
  while (crowd.under_way > 0) absl::SleepFor(absl::Milliseconds(20));
  absl::PrintF("%d of %d tasks taken, %d refusals\n", crowd.taken.load(), total,
               crowd.refused.load());
  return status;
}

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
  app.add_option("--samples", options.samples, "Runs of each measurement");
  app.add_option("--idle_seconds", options.idle_seconds, "Time of waiting");
  app.add_option("--channels", options.channels,
                 "Connections of the agents, at least one for 200");
  CLI11_PARSE(app, argc, argv);
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
  const absl::Status status = optfarm::Run(options, server, address);
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
