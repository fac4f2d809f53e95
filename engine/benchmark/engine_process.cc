#include "engine/benchmark/engine_process.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "engine_host/socket.h"

namespace optfarm::benchmark {
namespace {

using engine_host::FrameHeader;
using engine_host::FrameKind;
using engine_host::Transfer;

constexpr char kProgram[] = "optfarm-engine";
// UNITS: bytes of a runtime's own words that go into a message.
constexpr size_t kMaxReason = 1000;
// optfarm-engine ends a model's process itself and says so; it gets this long
// for it.
constexpr absl::Duration kGrace = absl::Seconds(10);

// What the runtime said, on one line.
std::string Reason(absl::string_view text) {
  std::string reason(text.substr(0, kMaxReason));
  std::replace_if(
      reason.begin(), reason.end(),
      [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  if (IsUtf8(reason)) return reason;
  std::replace_if(
      reason.begin(), reason.end(), [](unsigned char c) { return c >= 0x80; },
      '?');
  return reason;
}

std::string OwnFolder() {
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  return self.parent_path().string();
}

std::vector<uint32_t> OwnProcessors() {
  std::vector<uint32_t> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

int Milliseconds(absl::Duration time) {
  return static_cast<int>(
      std::clamp<int64_t>(absl::ToInt64Milliseconds(time), 1, INT_MAX));
}

std::vector<std::string> CommandFor(const EngineOptions& options,
                                    const std::string& program) {
  std::vector<std::string> argv;
  if (!options.launcher.empty()) argv.push_back(options.launcher);
  argv.insert(argv.end(), {program, options.name, options.library});
  if (options.sandbox) argv.push_back("--sandbox");
  for (const std::string& folder : options.readable) {
    argv.push_back(absl::StrCat("--readable=", folder));
  }
  return argv;
}

}  // namespace

const std::vector<std::string>& EngineNames() {
  static const auto& names =
      *new std::vector<std::string>{"onnxruntime", "tflite"};
  return names;
}

absl::string_view EngineModelEnding(absl::string_view engine) {
  if (engine == "onnxruntime") return ".onnx";
  if (engine == "tflite") return ".tflite";
  return "";
}

absl::StatusOr<EngineOptions> ParseEngine(absl::string_view text) {
  const size_t colon = text.find(':');
  EngineOptions options;
  options.name = std::string(text.substr(0, colon));
  if (EngineModelEnding(options.name).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no engine '", options.name, "'; there are ",
                     absl::StrJoin(EngineNames(), " and ")));
  }
  const std::string path = colon == absl::string_view::npos
                               ? ""
                               : std::string(text.substr(colon + 1));
  char real[PATH_MAX];
  if (path.empty() || ::realpath(path.c_str(), real) == nullptr ||
      std::filesystem::is_directory(real)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "engine ", options.name, ": ",
        path.empty() ? "its shared library is not given"
                     : absl::StrCat("there is no file '", path, "'"),
        "; give the runtime's shared library, such as ", options.name,
        options.name == "tflite" ? ":/usr/lib/libtensorflowlite_c.so"
                                 : ":/usr/lib/libonnxruntime.so"));
  }
  options.library = real;
  return options;
}

absl::StatusOr<std::unique_ptr<EngineProcess>> EngineProcess::Start(
    const EngineOptions& options) {
  const std::string program = options.program.empty()
                                  ? JoinPath(OwnFolder(), kProgram)
                                  : options.program;
  if (::access(program.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(
        "engine ", options.name, ": there is no program '", program,
        "'; it comes with optctl and optfarm-agent, put it beside them"));
  }
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("starting '", program, "'"));
  }
  SubprocessOptions how;
  how.argv = CommandFor(options, program);
  how.input_fd = sockets[1];
  absl::StatusOr<Subprocess> process = Subprocess::Start(how);
  ::close(sockets[1]);
  if (!process.ok()) {
    ::close(sockets[0]);
    return process.status();
  }
  return std::unique_ptr<EngineProcess>(
      new EngineProcess(options, sockets[0], *std::move(process)));
}

EngineProcess::~EngineProcess() {
  // It ends by itself; in a sandbox it cannot be killed.
  ::close(socket_);
}

absl::Status EngineProcess::Lost(absl::string_view why) {
  lost_ = std::string(why);
  return absl::AbortedError(absl::StrCat(name(), ": ", why));
}

absl::StatusOr<std::string> EngineProcess::Ask(FrameKind request,
                                               const std::string& payload,
                                               FrameKind answer) {
  if (!lost_.empty()) return Lost(lost_);
  const auto seconds = static_cast<uint32_t>(
      std::max<int64_t>(1, absl::ToInt64Seconds(options_.patience)));
  const int wait = Milliseconds(options_.patience + kGrace);
  Transfer done =
      engine_host::SendFrame(socket_, request, seconds, payload, wait);
  FrameHeader header;
  std::string received;
  if (done == Transfer::kDone) {
    done = engine_host::ReceiveFrame(socket_, &header, &received, wait);
  }
  switch (done) {
    case Transfer::kDone:
      break;
    case Transfer::kLate:
      return Lost("it did not answer in time");
    case Transfer::kTooLong:
      return Lost("more was to be sent than there is room for");
    case Transfer::kClosed:
      return Lost("its process ended");
  }
  if (header.kind == answer) return received;
  if (header.kind == FrameKind::kFailed) {
    return absl::FailedPreconditionError(
        absl::StrCat(name(), ": ", Reason(received)));
  }
  if (header.kind == FrameKind::kEnded) {
    return absl::AbortedError(absl::StrCat(name(), ": ", Reason(received)));
  }
  return Lost("it answered something else than it was asked");
}

absl::StatusOr<std::string> EngineProcess::Version() {
  OPTFARM_ASSIGN_OR_RETURN(const std::string version,
                           Ask(FrameKind::kVersion, "", FrameKind::kVersionIs));
  return Reason(version);
}

absl::StatusOr<engine_host::LoadedModel> EngineProcess::Load(
    const std::string& model_path, int threads) {
  engine_host::LoadRequest request;
  request.model_path = model_path;
  request.threads = static_cast<uint32_t>(threads);
  request.cpus = OwnProcessors();
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string answer,
      Ask(FrameKind::kLoad, engine_host::Encode(request), FrameKind::kLoaded));
  engine_host::LoadedModel model;
  if (!engine_host::Decode(answer, &model))
    return Lost("its answer is damaged");
  model.version = Reason(model.version);
  return model;
}

absl::Status EngineProcess::Feed(
    const std::vector<engine_host::TensorValue>& inputs) {
  return Ask(FrameKind::kFeed, engine_host::Encode(inputs), FrameKind::kDone)
      .status();
}

absl::StatusOr<engine_host::RunTimes> EngineProcess::Run(int untimed,
                                                         int timed) {
  engine_host::RunRequest request;
  request.untimed = static_cast<uint32_t>(untimed);
  request.timed = static_cast<uint32_t>(timed);
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string answer,
      Ask(FrameKind::kRun, engine_host::Encode(request), FrameKind::kTimes));
  engine_host::RunTimes times;
  if (!engine_host::Decode(answer, &times) ||
      times.micros.size() != request.timed) {
    return Lost("its answer is damaged");
  }
  return times;
}

absl::StatusOr<std::vector<engine_host::TensorValue>> EngineProcess::Fetch() {
  OPTFARM_ASSIGN_OR_RETURN(const std::string answer,
                           Ask(FrameKind::kFetch, "", FrameKind::kTensors));
  std::vector<engine_host::TensorValue> outputs;
  if (!engine_host::Decode(answer, &outputs)) {
    return Lost("its answer is damaged");
  }
  return outputs;
}

absl::Status EngineProcess::Unload() {
  return Ask(FrameKind::kUnload, "", FrameKind::kDone).status();
}

}  // namespace optfarm::benchmark
