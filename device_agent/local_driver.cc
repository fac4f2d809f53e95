// The driver for the machine that the agent runs on.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "device_agent/benchmark_plan.h"
#include "device_agent/device_driver.h"
#include "device_agent/machine_info.h"
#include "device_agent/numeric_check.h"
#include "device_agent/quiet_gate.h"
#include "engine/benchmark/affinity.h"
#include "engine/benchmark/benchmark.h"
#include "engine/benchmark/environment.h"
#include "engine/benchmark/noise.h"
#include "rpc/proto_time.h"

namespace optfarm::device_agent {
namespace {

// Medians of so many are steady enough to add up.
constexpr int kStepRuns = 40;

v1::DeviceHealth ReadHealth() {
  return HealthOf(benchmark::ReadEnvironment(OPTFARM_VERSION));
}

class LocalDriver final : public DeviceDriver {
 public:
  LocalDriver(const Flags& flags, const std::vector<v1::EngineInfo>& engines)
      : flags_(flags), info_(ReadMachineInfo()) {
    info_.mutable_engines()->Add(engines.begin(), engines.end());
    info_.set_name(flags.shared.name);
    info_.set_driver("local");
    info_.set_build_version(OPTFARM_VERSION);
    for (const std::string& tag : flags.tags) info_.add_tags(tag);
  }

  std::vector<v1::DeviceStatus> Devices(
      const std::set<std::string>& busy) override {
    v1::DeviceStatus status;
    *status.mutable_info() = info_;
    *status.mutable_health() = ReadHealth();
    if (!busy.empty()) return {status};
    const std::string reason = WhyWait(status.health(), flags_.quiet);
    status.set_ready(reason.empty());
    status.set_cooling(!reason.empty());
    status.set_reason(reason);
    return {status};
  }

  std::vector<std::string> ChildFlags(const std::string& /*device*/) override {
    return {};
  }

  absl::StatusOr<v1::Completion> Measure(
      const v1::LeasedTask& lease, const rpc::TaskFolder& folder,
      const DeviceEngines& engines, const MeasureProgress& progress) override {
    const v1::BenchmarkTask& task = lease.benchmark();
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int> cpus, CpusFor(task.spec()));
    OPTFARM_RETURN_IF_ERROR(benchmark::PinToCpus(cpus));
    // What is there to wait for is the machine as it was before this task.
    const std::string waited_in_vain = AwaitQuietMachine(task, progress);
    benchmark::BenchmarkRequest request =
        RequestFor(task, GraphPaths(lease, folder));
    engines.AddVariants(lease, folder, &request);
    OPTFARM_ASSIGN_OR_RETURN(
        std::vector<v1::Measurement> measurements,
        benchmark::RunBenchmark(request,
                                [&](const benchmark::BenchmarkProgress& now) {
                                  progress(now.fraction, now.stage);
                                  return absl::OkStatus();
                                }));
    OPTFARM_ASSIGN_OR_RETURN(const auto checks, CheckNumbers(lease, folder));
    v1::Completion completion;
    for (v1::Measurement& measurement : measurements) {
      measurement.mutable_cpu_affinity()->Add(cpus.begin(), cpus.end());
      if (!waited_in_vain.empty()) {
        benchmark::AddNoiseReason(
            absl::StrCat(
                "The wait for a quiet device was over: ", waited_in_vain, "."),
            &measurement);
      }
      Finish(task, checks, &measurement);
      engines.AddFailures(task, &measurement);
      *completion.mutable_benchmark()->add_measurements() =
          std::move(measurement);
    }
    return completion;
  }

 private:
  absl::StatusOr<std::vector<int>> CpusFor(
      const v1::BenchmarkSpec& spec) const {
    if (spec.cpus().empty()) return benchmark::ParseCpus(flags_.cpus);
    return std::vector<int>(spec.cpus().begin(), spec.cpus().end());
  }

  std::string AwaitQuietMachine(const v1::BenchmarkTask& task,
                                const MeasureProgress& progress) const {
    const absl::Duration patience =
        task.spec().has_cool_down()
            ? rpc::FromProtoDuration(task.spec().cool_down())
            : absl::Seconds(flags_.cool_down_seconds);
    return AwaitQuiet(
        ReadHealth, flags_.quiet, patience,
        [&](absl::string_view reason) {
          progress(0, absl::StrCat("waiting: ", reason));
        },
        absl::Now, absl::SleepFor);
  }

  // What the task knows about the graph that was measured.
  static void Finish(const v1::BenchmarkTask& task,
                     const std::vector<std::optional<v1::NumericCheck>>& checks,
                     v1::Measurement* measurement) {
    for (const v1::BenchmarkVariant& variant : task.variants()) {
      for (const v1::EngineModel& model : variant.engine_models()) {
        if (measurement->variant() !=
            absl::StrCat(variant.name(), "@", model.engine())) {
          continue;
        }
        *measurement->mutable_model() = model.model().digest();
      }
    }
    for (int i = 0; i < task.variants_size(); ++i) {
      if (task.variants(i).name() != measurement->variant()) continue;
      *measurement->mutable_model() = task.variants(i).model().digest();
      const auto& check = checks[static_cast<size_t>(i)];
      if (check.has_value()) *measurement->mutable_numeric_check() = *check;
    }
  }

  benchmark::BenchmarkRequest RequestFor(
      const v1::BenchmarkTask& task,
      const std::vector<std::string>& graph_paths) const {
    benchmark::BenchmarkRequest request;
    for (int i = 0; i < task.variants_size(); ++i) {
      const v1::BenchmarkVariant& variant = task.variants(i);
      benchmark::BenchmarkVariant& wanted = request.variants.emplace_back();
      wanted.name = variant.name();
      wanted.graph_path = graph_paths[static_cast<size_t>(i)];
      wanted.inputs.assign(variant.inputs().begin(), variant.inputs().end());
      for (const v1::TensorSpec& output : variant.outputs()) {
        wanted.outputs.push_back(output.name());
      }
    }
    const v1::BenchmarkSpec& spec = task.spec();
    request.threads.assign(spec.threads().begin(), spec.threads().end());
    if (request.threads.empty()) request.threads = flags_.threads;
    if (spec.min_runs() > 0) request.min_runs = spec.min_runs();
    if (spec.has_min_time())
      request.min_time = rpc::FromProtoDuration(spec.min_time());
    if (spec.has_max_time())
      request.max_time = rpc::FromProtoDuration(spec.max_time());
    if (spec.warmup_runs() > 0) request.warmup_runs = spec.warmup_runs();
    request.precision = spec.precision();
    if (spec.steps()) request.step_runs = kStepRuns;
    request.device = flags_.shared.name;
    request.build_version = OPTFARM_VERSION;
    return request;
  }

  const Flags flags_;
  v1::DeviceInfo info_;
};

}  // namespace

std::unique_ptr<DeviceDriver> MakeLocalDriver(
    const Flags& flags, const std::vector<v1::EngineInfo>& engines) {
  return std::make_unique<LocalDriver>(flags, engines);
}

}  // namespace optfarm::device_agent
