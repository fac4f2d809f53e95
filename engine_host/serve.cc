#include "engine_host/serve.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <utility>

#include "base/sandbox.h"
#include "engine_host/engine.h"
#include "engine_host/protocol.h"
#include "engine_host/socket.h"

namespace optfarm::engine_host {
namespace {

using Clock = std::chrono::steady_clock;

double MicrosSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

// UNITS: bytes resident at the most.
uint64_t PeakBytes() {
  struct rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

void StayOn(const std::vector<uint32_t>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const uint32_t cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  ::sched_setaffinity(0, sizeof(set), &set);
}

struct Answer {
  FrameKind kind = FrameKind::kDone;
  std::string payload;
};

Answer Failed(const Problem& problem) { return {FrameKind::kFailed, problem}; }

// The second process: one model, until it is unloaded.
class ModelProcess {
 public:
  ModelProcess(int socket, const ServeOptions& options)
      : socket_(socket), options_(options) {}

  // Answers `payload`, the request that the process was made for, and those
  // that follow.
  void Work(FrameHeader header, std::string payload) {
    for (;;) {
      // Ends the process: whatever the runtime is busy with cannot be stopped
      // otherwise.
      ::alarm(header.seconds);
      Answer answer = AnswerTo(header.kind, payload);
      ::alarm(0);
      if (answer.payload.size() > kMaxPayload) {
        answer = Failed("the outputs are too large to be handed over");
      }
      const bool is_last = header.kind == FrameKind::kUnload ||
                           header.kind == FrameKind::kVersion ||
                           (header.kind == FrameKind::kLoad && !is_loaded_);
      if (SendFrame(socket_, answer.kind, 0, answer.payload, -1) !=
              Transfer::kDone ||
          is_last ||
          ReceiveFrame(socket_, &header, &payload, -1) != Transfer::kDone) {
        return;
      }
    }
  }

 private:
  Answer AnswerTo(FrameKind kind, const std::string& payload) {
    switch (kind) {
      case FrameKind::kVersion:
        return Version();
      case FrameKind::kLoad:
        return Load(payload);
      case FrameKind::kUnload:
        return {};
      default:
        break;
    }
    if (!is_loaded_) return Failed("no model is loaded");
    switch (kind) {
      case FrameKind::kFeed:
        return Feed(payload);
      case FrameKind::kRun:
        return Run(payload);
      case FrameKind::kFetch:
        return Fetch();
      default:
        return Failed("there is no such request");
    }
  }

  Problem Open() {
    if (engine_ != nullptr) return "";
    Problem problem;
    engine_ = OpenEngine(options_.engine, options_.library, &problem);
    return problem;
  }

  Answer Version() {
    const Problem problem = Open();
    if (!problem.empty()) return Failed(problem);
    return {FrameKind::kVersionIs, engine_->Version()};
  }

  Answer Load(const std::string& payload) {
    LoadRequest request;
    if (is_loaded_) return Failed("a model is loaded already");
    if (!Decode(payload, &request)) return Failed("the request is damaged");
    StayOn(request.cpus);
    Problem problem = Open();
    if (!problem.empty()) return Failed(problem);
    const Clock::time_point start = Clock::now();
    problem =
        engine_->Load(request.model_path, static_cast<int>(request.threads));
    if (!problem.empty()) return Failed(problem);
    is_loaded_ = true;
    return {FrameKind::kLoaded,
            Encode(LoadedModel{engine_->Version(), MicrosSince(start),
                               engine_->inputs(), engine_->outputs()})};
  }

  Answer Feed(const std::string& payload) {
    std::vector<TensorValue> values;
    if (!Decode(payload, &values)) return Failed("the request is damaged");
    const std::vector<TensorInfo>& inputs = engine_->inputs();
    if (values.size() != inputs.size()) {
      return Failed("the model has " + std::to_string(inputs.size()) +
                    " inputs and is fed " + std::to_string(values.size()));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].info.type == inputs[i].type) continue;
      return Failed("input '" + inputs[i].name + "' is fed another type");
    }
    const Problem problem = engine_->Feed(std::move(values));
    is_fed_ = problem.empty();
    return is_fed_ ? Answer() : Failed(problem);
  }

  Answer Run(const std::string& payload) {
    RunRequest request;
    if (!Decode(payload, &request)) return Failed("the request is damaged");
    if (!is_fed_) return Failed("the model has been fed nothing");
    RunTimes times;
    for (uint32_t i = 0; i < request.untimed + request.timed; ++i) {
      Problem problem = engine_->Prepare();
      if (!problem.empty()) return Failed(problem);
      const Clock::time_point start = Clock::now();
      problem = engine_->Run();
      const double micros = MicrosSince(start);
      if (!problem.empty()) return Failed(problem);
      if (i >= request.untimed) times.micros.push_back(micros);
    }
    times.peak_bytes = PeakBytes();
    return {FrameKind::kTimes, Encode(times)};
  }

  Answer Fetch() {
    std::vector<TensorValue> values;
    const Problem problem = engine_->Fetch(&values);
    if (!problem.empty()) return Failed(problem);
    return {FrameKind::kTensors, Encode(values)};
  }

  const int socket_;
  const ServeOptions& options_;
  std::unique_ptr<Engine> engine_;
  bool is_loaded_ = false;
  bool is_fed_ = false;
};

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

[[noreturn]] void RunModelProcess(int socket, const ServeOptions& options,
                                  const FrameHeader& header,
                                  std::string payload) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (options.sandbox) {
    SandboxOptions limits;
    limits.readable = SystemPaths();
    limits.readable.push_back(FolderOf(options.library));
    limits.readable.insert(limits.readable.end(), options.readable.begin(),
                           options.readable.end());
    EnterSandbox(limits);
  }
  ModelProcess(socket, options).Work(header, std::move(payload));
  // Not what the runtime's own code would do at the end: some of it crashes.
  ::_exit(0);
}

// How it ended, unless it ended well.
std::string AwaitEnd(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return "its process was lost";
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGALRM) return "it did not answer in time";
    return "it was killed by signal " + std::to_string(signal) + " (" +
           ::strsignal(signal) + ")";
  }
  if (WEXITSTATUS(status) == 0) return "";
  return "it ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void Serve(int socket, const ServeOptions& options) {
  FrameHeader header;
  std::string payload;
  while (ReceiveFrame(socket, &header, &payload, -1) == Transfer::kDone) {
    const pid_t child = ::fork();
    if (child == 0) {
      RunModelProcess(socket, options, header, std::move(payload));
    }
    const std::string end =
        child < 0 ? std::string("it could not be started") : AwaitEnd(child);
    if (end.empty()) continue;
    if (SendFrame(socket, FrameKind::kEnded, 0, end, -1) != Transfer::kDone) {
      return;
    }
  }
}

}  // namespace optfarm::engine_host
