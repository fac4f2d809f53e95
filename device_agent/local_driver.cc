// The driver for the machine that the agent runs on.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "device_agent/device_driver.h"
#include "device_agent/machine_info.h"
#include "engine/benchmark/benchmark.h"

namespace optfarm::device_agent {
namespace {

absl::Duration ToDuration(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

class LocalDriver final : public DeviceDriver {
 public:
  explicit LocalDriver(LocalDriverOptions options)
      : options_(std::move(options)) {}

  v1::DeviceInfo Describe() override {
    v1::DeviceInfo info = ReadMachineInfo();
    info.set_name(options_.name);
    info.set_driver("local");
    info.set_build_version(OPTFARM_VERSION);
    return info;
  }

  absl::Status CheckReady() override {
    if (options_.max_celsius <= 0) return absl::OkStatus();
    const std::optional<double> celsius = ReadTemperature();
    if (!celsius || *celsius <= options_.max_celsius) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrFormat("cooling down, %.0f degrees", *celsius));
  }

  absl::StatusOr<v1::BenchmarkResult> Measure(
      const v1::BenchmarkTask& task,
      const std::vector<std::string>& graph_paths,
      const MeasureProgress& progress) override {
    OPTFARM_ASSIGN_OR_RETURN(
        std::vector<v1::Measurement> measurements,
        benchmark::RunBenchmark(RequestFor(task, graph_paths),
                                [&](const benchmark::BenchmarkProgress& now) {
                                  progress(now.fraction, now.stage);
                                  return absl::OkStatus();
                                }));
    v1::BenchmarkResult result;
    for (v1::Measurement& measurement : measurements) {
      for (const v1::BenchmarkVariant& variant : task.variants()) {
        if (variant.name() == measurement.variant()) {
          *measurement.mutable_model() = variant.model().digest();
        }
      }
      *result.add_measurements() = std::move(measurement);
    }
    return result;
  }

 private:
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
    if (request.threads.empty()) request.threads = options_.threads;
    if (spec.min_runs() > 0) request.min_runs = spec.min_runs();
    if (spec.has_min_time()) request.min_time = ToDuration(spec.min_time());
    if (spec.has_max_time()) request.max_time = ToDuration(spec.max_time());
    if (spec.warmup_runs() > 0) request.warmup_runs = spec.warmup_runs();
    request.device = options_.name;
    request.build_version = OPTFARM_VERSION;
    return request;
  }

  const LocalDriverOptions options_;
};

}  // namespace

std::unique_ptr<DeviceDriver> MakeLocalDriver(LocalDriverOptions options) {
  return std::make_unique<LocalDriver>(std::move(options));
}

}  // namespace optfarm::device_agent
