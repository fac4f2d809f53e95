// Runtimes that the device's owner ships, which benchmarks run beside
// Optfarm's: flag --engine of optfarm-agent.

#ifndef OPTFARM_DEVICE_AGENT_DEVICE_ENGINES_H_
#define OPTFARM_DEVICE_AGENT_DEVICE_ENGINES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device_agent/flags.h"
#include "engine/benchmark/benchmark_request.h"
#include "engine/benchmark/engine_process.h"
#include "optfarm/v1/devices.pb.h"
#include "optfarm/v1/work.pb.h"
#include "rpc/task_folder.h"

namespace optfarm::device_agent {

// Loads each of flags.engines once, and asks for its version.
// ERRORS: InvalidArgument for a flag that names no engine or no file, or one
// engine twice; those of starting an engine and of its library.
absl::StatusOr<std::vector<v1::EngineInfo>> DescribeEngines(const Flags& flags);

// The names in flags.engines.
std::vector<std::string> EngineNamesOf(const Flags& flags);

// The engines of one task, started and without a model.
class DeviceEngines {
 public:
  // None.
  DeviceEngines() = default;

  // One process for each engine and each graph that it is to run, of the lease
  // in the folder; none where that cannot be read. With a sandbox they read the
  // task's inputs and no more.
  // REQUIRES: this process has not entered its sandbox, where nothing can be
  // started.
  static DeviceEngines Start(const Flags& flags, const rpc::TaskFolder& folder);

  // Adds to `request`, whose variants are those of the lease in their order, a
  // variant for each engine that the task asks for and each of them that it can
  // run.
  void AddVariants(const v1::LeasedTask& lease, const rpc::TaskFolder& folder,
                   benchmark::BenchmarkRequest* request) const;

  // Adds to the lease's measurements the engines that AddVariants left out,
  // with the reason.
  void AddFailures(const v1::BenchmarkTask& task,
                   v1::Measurement* measurement) const;

 private:
  struct Started {
    std::string engine;
    // Of the lease, by its place.
    int variant = 0;
    std::shared_ptr<benchmark::EngineProcess> process;
    // Where there is no process.
    std::string failure;
  };

  const Started* Find(absl::string_view engine, int variant) const;

  std::vector<Started> started_;
};

}  // namespace optfarm::device_agent

#endif  // OPTFARM_DEVICE_AGENT_DEVICE_ENGINES_H_
