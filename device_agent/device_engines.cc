#include "device_agent/device_engines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device_agent/benchmark_plan.h"

namespace optfarm::device_agent {
namespace {

// One library is loaded in this time, or its agent does not start.
constexpr absl::Duration kPatience = absl::Minutes(1);

benchmark::EngineOptions WithSandbox(benchmark::EngineOptions options,
                                     const Flags& flags) {
  options.launcher = flags.launcher;
  options.sandbox = SandboxFor(flags) == rpc::ChildSandbox::kFull;
  return options;
}

const v1::EngineModel* ModelFor(const v1::BenchmarkVariant& variant,
                                const std::string& engine) {
  for (const v1::EngineModel& model : variant.engine_models()) {
    if (model.engine() == engine) return &model;
  }
  return nullptr;
}

std::string EngineOf(const std::string& flag) {
  return flag.substr(0, flag.find(':'));
}

std::string VariantOf(const v1::BenchmarkVariant& variant,
                      const std::string& engine) {
  return absl::StrCat(variant.name(), "@", engine);
}

}  // namespace

absl::StatusOr<std::vector<v1::EngineInfo>> DescribeEngines(
    const Flags& flags) {
  std::vector<v1::EngineInfo> infos;
  for (const std::string& text : flags.engines) {
    OPTFARM_ASSIGN_OR_RETURN(benchmark::EngineOptions options,
                             benchmark::ParseEngine(text));
    if (std::any_of(infos.begin(), infos.end(), [&](const auto& info) {
          return info.name() == options.name;
        })) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.name, " is given twice"));
    }
    options = WithSandbox(std::move(options), flags);
    options.patience = kPatience;
    OPTFARM_ASSIGN_OR_RETURN(const auto process,
                             benchmark::EngineProcess::Start(options));
    v1::EngineInfo& info = infos.emplace_back();
    info.set_name(options.name);
    OPTFARM_ASSIGN_OR_RETURN(*info.mutable_version(), process->Version());
  }
  return infos;
}

std::vector<std::string> EngineNamesOf(const Flags& flags) {
  std::vector<std::string> names;
  for (const std::string& text : flags.engines) {
    names.push_back(EngineOf(text));
  }
  return names;
}

DeviceEngines DeviceEngines::Start(const Flags& flags,
                                   const rpc::TaskFolder& folder) {
  DeviceEngines engines;
  if (flags.engines.empty()) return engines;
  const absl::StatusOr<v1::LeasedTask> lease = folder.ReadLease();
  if (!lease.ok()) return engines;
  const v1::BenchmarkTask& task = lease->benchmark();
  for (const std::string& text : flags.engines) {
    absl::StatusOr<benchmark::EngineOptions> options =
        benchmark::ParseEngine(text);
    if (options.ok()) {
      *options = WithSandbox(*std::move(options), flags);
      options->readable = {folder.in()};
    }
    const std::string engine = EngineOf(text);
    for (int i = 0; i < task.variants_size(); ++i) {
      if (ModelFor(task.variants(i), engine) == nullptr) continue;
      Started& started = engines.started_.emplace_back();
      started.engine = engine;
      started.variant = i;
      absl::Status status = options.status();
      if (status.ok()) {
        auto process = benchmark::EngineProcess::Start(*options);
        status = process.status();
        if (process.ok()) started.process = *std::move(process);
      }
      started.failure = std::string(status.message());
    }
  }
  return engines;
}

const DeviceEngines::Started* DeviceEngines::Find(absl::string_view engine,
                                                  int variant) const {
  for (const Started& started : started_) {
    if (started.engine == engine && started.variant == variant) return &started;
  }
  return nullptr;
}

void DeviceEngines::AddVariants(const v1::LeasedTask& lease,
                                const rpc::TaskFolder& folder,
                                benchmark::BenchmarkRequest* request) const {
  const v1::BenchmarkTask& task = lease.benchmark();
  for (const std::string& engine : task.spec().engines()) {
    for (int i = 0; i < task.variants_size(); ++i) {
      const Started* started = Find(engine, i);
      if (started == nullptr || started->process == nullptr) continue;
      benchmark::BenchmarkVariant& variant = request->variants.emplace_back();
      variant.name = VariantOf(task.variants(i), engine);
      variant.graph_path = EnginePath(folder, i, engine);
      variant.same_as = task.variants(i).name();
      variant.engine = started->process;
    }
  }
}

void DeviceEngines::AddFailures(const v1::BenchmarkTask& task,
                                v1::Measurement* measurement) const {
  for (int i = 0; i < task.variants_size(); ++i) {
    if (task.variants(i).name() != measurement->variant()) continue;
    for (const std::string& engine : task.spec().engines()) {
      const Started* started = Find(engine, i);
      std::string reason;
      if (ModelFor(task.variants(i), engine) == nullptr) {
        // The original, which comes first, has a file of one format at most.
        if (i == 0) continue;
        reason = absl::StrCat(engine, ": the result could not be written as ",
                              benchmark::EngineModelEnding(engine),
                              "; exports in the report say why");
      } else if (started == nullptr) {
        reason =
            absl::StrCat(engine,
                         ": the device does not have it; start its agent with "
                         "--engine=",
                         engine, ":FILE");
      } else if (started->process == nullptr) {
        reason = started->failure;
      } else {
        continue;
      }
      v1::EngineFailure& failure = *measurement->add_engine_failures();
      failure.set_engine(engine);
      failure.set_reason(reason);
    }
  }
}

}  // namespace optfarm::device_agent
