// A farm of real processes on this machine: one server or several, and any
// number of workers and agents, which tests kill, stop and start again.

#ifndef OPTFARM_TESTS_INTEGRATION_FARM_H_
#define OPTFARM_TESTS_INTEGRATION_FARM_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "optfarm/v1/devices.grpc.pb.h"
#include "optfarm/v1/jobs.grpc.pb.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "optfarm/v1/work.grpc.pb.h"
#include "rpc/blob_transfer.h"
#include "rpc/channel.h"
#include "rpc/status.h"
#include "tests/integration/cut_proxy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::integration {

// Longer than anything here takes on a busy machine; reached only by failures.
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// Polls until `done`; false when patience ran out.
inline bool Await(const std::function<bool()>& done) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!done()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

// One program with its log.
class Program {
 public:
  // `command`: a path and flags. Returns when it says that it is ready, or at
  // once.
  Program(std::vector<std::string> command, std::string log,
          bool await_ready = true)
      : log_(std::move(log)) {
    SubprocessOptions options;
    options.argv = std::move(command);
    options.output_file = log_;
    auto started = Subprocess::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    process_ = std::make_unique<Subprocess>(*std::move(started));
    if (!await_ready) return;
    EXPECT_TRUE(Await([&] { return LogHas(" ready "); })) << Log();
  }

  std::string Log() const { return ReadFile(log_).value_or(""); }
  bool LogHas(absl::string_view text) const {
    return absl::StrContains(Log(), text);
  }
  pid_t pid() const { return process_->pid(); }

  // As a power cut would: no chance to clean up.
  void Kill9() {
    process_->Signal(SIGKILL);
    process_->Wait(kPatience);
  }
  // Until it ends by itself; nullopt: it does not.
  std::optional<SubprocessExit> AwaitExit() {
    return process_->Wait(kPatience);
  }
  // Asks to stop; returns how it did.
  SubprocessExit Terminate() { return process_->Stop(kPatience); }

  // The process of the task it works on; 0: none. In namespaces of its own its
  // parent is their first process, which is our child.
  pid_t TaskProcess() const {
    const std::vector<std::string> pids = ListFolder("/proc").value();
    for (const std::string& pid : pids) {
      pid_t number = 0;
      if (!absl::SimpleAtoi(pid, &number)) continue;
      const pid_t parent = ParentOf(number);
      if (parent <= 0) continue;
      // Between fork and exec it is not yet the task.
      const auto command = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
      if (command.ok() && absl::StrContains(*command, "--run_task=") &&
          (parent == this->pid() || ParentOf(parent) == this->pid())) {
        return number;
      }
    }
    return 0;
  }
  // Never 0: signals for nobody would reach the tests themselves.
  pid_t AwaitTaskProcess() const {
    pid_t task = 0;
    if (!Await([&] { return (task = TaskProcess()) != 0; })) {
      throw std::runtime_error("there is no process of a task: " + Log());
    }
    return task;
  }

 private:
  // -1: it is gone, or only its parent has to notice.
  static pid_t ParentOf(pid_t pid) {
    const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
    if (!stat.ok()) return -1;
    // "pid (name) state parent ...", and the name may hold anything.
    const size_t end = stat->rfind(')');
    if (end == std::string::npos) return -1;
    const std::vector<std::string> rest =
        absl::StrSplit(stat->substr(end + 2), ' ');
    pid_t parent = 0;
    if (rest.size() < 2 || rest[0] == "Z" ||
        !absl::SimpleAtoi(rest[1], &parent)) {
      return -1;
    }
    return parent;
  }

  std::string log_;
  std::unique_ptr<Subprocess> process_;
};

inline bool IsAlive(pid_t pid) {
  const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  return stat.ok() && !absl::StrContains(*stat, ") Z ");
}

// A port that nobody else has now, and that the kernel gives to no outgoing
// connection while a server that listens there is down.
inline int FreePort() {
  std::random_device random;
  while (true) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int port = std::uniform_int_distribution<int>(15000, 30000)(random);
    address.sin_port = htons(static_cast<uint16_t>(port));
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const int bound =
        ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    ::close(fd);
    if (bound == 0) return port;
  }
}

class Farm {
 public:
  // `server_flags`: further ones of every server that is started; `data_dir`:
  // where they keep their data, by default in the farm's folder. `servers`: so
  // many work together, on what the flags say that they share, and reach each
  // other over wires.
  explicit Farm(std::vector<std::string> server_flags = {},
                const std::string& data_dir = "", size_t servers = 1)
      : data_dir_(data_dir.empty() ? JoinPath(folder_, "data") : data_dir),
        server_flags_(std::move(server_flags)),
        servers_(servers) {
    if (servers == 1) {
      StartServer();
      return;
    }
    for (size_t i = 0; i < servers; ++i) {
      addresses_.push_back(absl::StrCat("127.0.0.1:", FreePort()));
    }
    LayWires();
    for (size_t i = 0; i < servers; ++i) StartServer(i);
    Connect();
  }
  // What the programs said is what explains a failure.
  ~Farm() {
    if (!::testing::Test::HasFailure()) return;
    const std::vector<std::string> names = ListFolder(folder_).value();
    for (const std::string& name : names) {
      if (LowerExtension(name) != "log") continue;
      std::cerr << "--- " << name << "\n"
                << ReadFile(JoinPath(folder_, name)).value_or("");
    }
  }

  const std::string& folder() const { return folder_; }
  // Of all servers, with commas between them.
  std::string address() const { return absl::StrJoin(addresses_, ","); }
  Program& server(size_t number = 0) { return *servers_[number]; }
  size_t servers() const { return servers_.size(); }
  // The last that said that it leads; the first when there is only one.
  size_t Leader() const {
    size_t leader = 0;
    std::string newest;
    for (size_t i = 0; i < servers_.size() && servers_.size() > 1; ++i) {
      // "TIME I server: this server leads, term N": times sort as text.
      const std::string log = servers_[i]->Log();
      const size_t at = log.rfind("this server leads, term");
      if (at == std::string::npos) continue;
      const size_t line = log.rfind('\n', at) + 1;
      std::string when = log.substr(line, at - line);
      if (when <= newest) continue;
      newest = std::move(when);
      leader = i;
    }
    return leader;
  }

  // From now on participants reach the servers over wires that can be cut.
  void LayWires() {
    for (const std::string& address : addresses_) {
      wires_.push_back(std::make_unique<CutProxy>(address));
    }
  }
  // Of one server, drawn by the caller: to participants and other servers.
  void CutWire(size_t number) { wires_[number]->Cut(); }

  // On the same address and data as before.
  void StartServer(size_t number = 0) {
    const bool first_start = addresses_.empty();
    std::vector<std::string> command = {
        testing::ProgramPath("optfarm-server"),
        absl::StrCat("--grpc=",
                     first_start ? "127.0.0.1:0" : addresses_[number])};
    command.insert(command.end(), server_flags_.begin(), server_flags_.end());
    const auto unless_given = [&](absl::string_view flag,
                                  absl::string_view value) {
      if (std::none_of(command.begin(), command.end(),
                       [flag](const std::string& word) {
                         return absl::StartsWith(word, flag);
                       })) {
        command.push_back(absl::StrCat(flag, value));
      }
    };
    // Short, for tests that wait for one to end.
    unless_given("--lease_seconds=", "3");
    std::string name = "server";
    if (servers() > 1) {
      absl::StrAppend(&name, number);
      command.push_back("--advertise=" + wires_[number]->address());
      command.push_back(absl::StrCat("--data_dir=", data_dir_, number));
    } else {
      unless_given("--data_dir=", data_dir_);
    }
    servers_[number] =
        std::make_unique<Program>(std::move(command), NewLog(name));
    if (servers() > 1) return;
    const std::string log = servers_[number]->Log();
    const size_t at = log.find("grpc=") + 5;
    addresses_ = {log.substr(at, log.find(' ', at) - at)};
    Connect();
  }

  std::unique_ptr<Program> StartWorker(const std::string& name,
                                       std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), testing::ProgramPath("optfarm-worker"));
    return StartParticipant(name, std::move(flags));
  }
  std::unique_ptr<Program> StartAgent(const std::string& name,
                                      std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), testing::ProgramPath("optfarm-agent"));
    return StartParticipant(name, std::move(flags));
  }
  // `command`: a path and flags of its own.
  std::unique_ptr<Program> StartParticipant(const std::string& name,
                                            std::vector<std::string> command,
                                            bool await_ready = true) {
    std::vector<std::string> reached = addresses_;
    for (size_t i = 0; i < wires_.size(); ++i) {
      reached[i] = wires_[i]->address();
    }
    command.push_back("--server=" + absl::StrJoin(reached, ","));
    command.push_back(absl::StrCat("--name=", name));
    command.push_back(absl::StrCat("--work_dir=", folder_, "/", name));
    return std::make_unique<Program>(std::move(command), NewLog(name),
                                     await_ready);
  }

  // Empty when the server does not know it.
  v1::Device Device(const std::string& name) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::GetDeviceRequest request;
    request.set_name(name);
    v1::Device device;
    devices_->GetDevice(&context, request, &device);
    return device;
  }

  rpc::ModelStub* models() { return models_.get(); }
  v1::WorkService::Stub* work() { return work_.get(); }

  v1::NamedBlob Upload(const std::string& path) {
    v1::NamedBlob blob;
    auto digest = rpc::UploadFile(models_.get(), path);
    EXPECT_TRUE(digest.ok()) << digest.status();
    blob.set_name(BaseName(path));
    if (digest.ok()) *blob.mutable_digest() = *digest;
    return blob;
  }

  // The example that ships with the project, with its pictures.
  v1::JobSpec DigitsJob(const std::string& recipe) {
    v1::JobSpec spec;
    *spec.mutable_model() =
        Upload(testing::SourcePath("examples/digits/digits.pb"));
    spec.set_recipe_name(recipe);
    v1::DataSource& samples = *spec.mutable_calibration()->add_sources();
    samples.set_role(v1::DataSource::SAMPLES);
    samples.set_mean(127.5);
    samples.set_std(127.5);
    const std::string images = testing::SourcePath("examples/digits/images");
    const std::vector<std::string> labels = ListFolder(images).value();
    for (const std::string& label : labels) {
      std::vector<std::string> names =
          ListFolder(JoinPath(images, label)).value();
      // Enough to calibrate, and a second of work.
      names.resize(std::min<size_t>(names.size(), 8));
      for (const std::string& name : names) {
        v1::DataFile& file = *samples.add_files();
        file.set_path(absl::StrCat(label, "/", name));
        *file.mutable_digest() =
            Upload(absl::StrCat(images, "/", file.path())).digest();
      }
    }
    spec.set_no_cache(true);
    return spec;
  }

  // Returns the job's id.
  std::string Submit(const v1::JobSpec& spec) {
    grpc::ClientContext context;
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec;
    v1::SubmitJobResponse response;
    const absl::Status status =
        rpc::FromGrpc(jobs_->SubmitJob(&context, request, &response));
    EXPECT_TRUE(status.ok()) << status;
    return response.job().job_id();
  }

  v1::Job Get(const std::string& job_id) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    v1::Job job;
    const absl::Status status =
        rpc::FromGrpc(jobs_->GetJob(&context, request, &job));
    EXPECT_TRUE(status.ok()) << status;
    return job;
  }

  void Cancel(const std::string& job_id) {
    grpc::ClientContext context;
    v1::CancelJobRequest request;
    request.set_job_id(job_id);
    v1::Job job;
    const absl::Status status =
        rpc::FromGrpc(jobs_->CancelJob(&context, request, &job));
    EXPECT_TRUE(status.ok()) << status;
  }

  v1::Job AwaitEnd(const std::string& job_id) {
    v1::Job job;
    EXPECT_TRUE(Await([&] {
      job = Get(job_id);
      return job.state() >= v1::SUCCEEDED;
    })) << job.DebugString();
    return job;
  }

  // The bytes of one of the job's artifacts, or of a task's.
  std::string Artifact(const v1::Job& job, const std::string& name) {
    std::vector<v1::Artifact> all(job.artifacts().begin(),
                                  job.artifacts().end());
    for (const v1::Task& task : job.tasks()) {
      all.insert(all.end(), task.artifacts().begin(), task.artifacts().end());
    }
    for (const v1::Artifact& artifact : all) {
      if (artifact.name() != name) continue;
      const std::string path = JoinPath(folder_, "downloaded");
      const absl::Status status =
          rpc::DownloadBlob(models_.get(), artifact.digest(), path);
      EXPECT_TRUE(status.ok()) << status;
      return ReadFile(path).value_or("");
    }
    return "";
  }

 private:
  void Connect() {
    rpc::ChannelOptions options;
    options.target = address();
    auto channel = rpc::MakeChannel(options);
    ASSERT_TRUE(channel.ok()) << channel.status();
    models_ = v1::ModelService::NewStub(*channel);
    jobs_ = v1::JobService::NewStub(*channel);
    work_ = v1::WorkService::NewStub(*channel);
    devices_ = v1::DeviceService::NewStub(*channel);
  }

  std::string NewLog(absl::string_view name) {
    return absl::StrCat(folder_, "/", name, "-", ++logs_, ".log");
  }

  const std::string folder_ = testing::FreshFolder();
  const std::string data_dir_;
  const std::vector<std::string> server_flags_;
  int logs_ = 0;
  // Of each server; its wire, where there are any, has the same number.
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<CutProxy>> wires_;
  std::vector<std::unique_ptr<Program>> servers_;
  std::unique_ptr<v1::ModelService::Stub> models_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::WorkService::Stub> work_;
  std::unique_ptr<v1::DeviceService::Stub> devices_;
};

}  // namespace optfarm::integration

#endif  // OPTFARM_TESTS_INTEGRATION_FARM_H_
