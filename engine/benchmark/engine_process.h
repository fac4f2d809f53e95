// A runtime that the user ships, beside Optfarm's: optfarm-engine loads its
// shared library and runs a model in it, in a process of its own, so that
// nothing the runtime does can take this one along.

#ifndef OPTFARM_ENGINE_BENCHMARK_ENGINE_PROCESS_H_
#define OPTFARM_ENGINE_BENCHMARK_ENGINE_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/subprocess.h"
#include "engine_host/protocol.h"

namespace optfarm::benchmark {

struct EngineOptions {
  // One of EngineNames().
  std::string name;
  // Its shared library.
  std::string library;
  // optfarm-engine; empty: beside this program.
  std::string program = {};
  // What starts it, where the kernel cannot: an emulator.
  std::string launcher = {};
  // Keeps it from the network and from all files but the library's folder, the
  // system's and `readable`.
  bool sandbox = false;
  std::vector<std::string> readable = {};
  // For one request.
  absl::Duration patience = absl::Minutes(5);
};

// "onnxruntime", "tflite".
const std::vector<std::string>& EngineNames();

// The ending of the model files that an engine runs: ".onnx", ".tflite"; "" for
// an unknown name.
absl::string_view EngineModelEnding(absl::string_view engine);

// Reads "onnxruntime:/lib/libonnxruntime.so"; the path becomes absolute.
// ERRORS: InvalidArgument for an unknown engine, with those that exist, or a
// file that is not there.
absl::StatusOr<EngineOptions> ParseEngine(absl::string_view text);

// One model at a time. THREADS: one. What its runtime sends is checked before
// use. ERRORS: of all calls: FailedPrecondition when the runtime refuses or
// fails, with its own reason; Aborted when its process ended or did not answer.
class EngineProcess {
 public:
  // ERRORS: NotFound without optfarm-engine; Unavailable when it cannot be
  // started.
  static absl::StatusOr<std::unique_ptr<EngineProcess>> Start(
      const EngineOptions& options);
  ~EngineProcess();
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;

  const std::string& name() const { return options_.name; }

  // What the runtime calls its version.
  absl::StatusOr<std::string> Version();
  // On the processors that this thread may use.
  absl::StatusOr<engine_host::LoadedModel> Load(const std::string& model_path,
                                                int threads);
  absl::Status Feed(const std::vector<engine_host::TensorValue>& inputs);
  // REQUIRES: both at most kMaxRunsARequest. ENSURES: `timed` times.
  absl::StatusOr<engine_host::RunTimes> Run(int untimed, int timed);
  absl::StatusOr<std::vector<engine_host::TensorValue>> Fetch();
  // Frees the model; another can be loaded.
  absl::Status Unload();

 private:
  EngineProcess(const EngineOptions& options, int socket, Subprocess process)
      : options_(options), socket_(socket), process_(std::move(process)) {}

  // The payload of the answer.
  absl::StatusOr<std::string> Ask(engine_host::FrameKind request,
                                  const std::string& payload,
                                  engine_host::FrameKind answer);
  absl::Status Lost(absl::string_view why);

  const EngineOptions options_;
  const int socket_;
  Subprocess process_;
  // Why nothing can be asked any more; empty: all is well.
  std::string lost_;
};

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_ENGINE_PROCESS_H_
