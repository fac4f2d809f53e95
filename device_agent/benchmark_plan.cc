#include "device_agent/benchmark_plan.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "engine/benchmark/engine_process.h"

namespace optfarm::device_agent {
namespace {

constexpr int kMaxVariants = 32;

// A variant's name is the recipe's, and a recipe's name need not be a file's.
std::string GraphPath(int variant) {
  return absl::StrCat("variant", variant, "/graph.pb");
}

std::string EngineFile(int variant, absl::string_view engine) {
  return absl::StrCat("variant", variant, "/model",
                      benchmark::EngineModelEnding(engine));
}

std::string CheckPath(int variant) {
  return absl::StrCat("variant", variant, "/check.pb");
}

}  // namespace

absl::StatusOr<std::vector<rpc::TaskInput>> BenchmarkInputs(
    const v1::LeasedTask& lease, const std::string& device,
    const std::vector<std::string>& engines) {
  if (!lease.has_benchmark()) {
    return absl::InvalidArgumentError(
        "the server leased something else than a benchmark task to an agent");
  }
  const v1::BenchmarkTask& task = lease.benchmark();
  if (task.device() != device) {
    return absl::InvalidArgumentError(
        absl::StrCat("the task is for device '", task.device(),
                     "' and this agent has '", device, "'"));
  }
  if (task.variants().empty() || task.variants_size() > kMaxVariants) {
    return absl::InvalidArgumentError(
        absl::StrCat("the task has ", task.variants_size(), " variants; 1 to ",
                     kMaxVariants, " are measured"));
  }
  std::vector<rpc::TaskInput> inputs;
  absl::flat_hash_set<std::string> names;
  for (int i = 0; i < task.variants_size(); ++i) {
    if (!names.insert(task.variants(i).name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the task has two variants '", task.variants(i).name(), "'"));
    }
    inputs.push_back({task.variants(i).model().digest(), GraphPath(i)});
    if (task.variants(i).has_check_sample()) {
      inputs.push_back({task.variants(i).check_sample(), CheckPath(i)});
    }
    absl::flat_hash_set<absl::string_view> given;
    for (const v1::EngineModel& model : task.variants(i).engine_models()) {
      if (!absl::c_linear_search(engines, model.engine())) continue;
      if (!given.insert(model.engine()).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("variant '", task.variants(i).name(),
                         "' has two models for ", model.engine()));
      }
      inputs.push_back({model.model().digest(), EngineFile(i, model.engine())});
    }
  }
  return inputs;
}

std::vector<std::string> GraphPaths(const v1::LeasedTask& lease,
                                    const rpc::TaskFolder& folder) {
  std::vector<std::string> paths;
  for (int i = 0; i < lease.benchmark().variants_size(); ++i) {
    paths.push_back(JoinPath(folder.in(), GraphPath(i)));
  }
  return paths;
}

std::vector<std::string> CheckPaths(const v1::LeasedTask& lease,
                                    const rpc::TaskFolder& folder) {
  std::vector<std::string> paths;
  for (int i = 0; i < lease.benchmark().variants_size(); ++i) {
    paths.push_back(lease.benchmark().variants(i).has_check_sample()
                        ? JoinPath(folder.in(), CheckPath(i))
                        : "");
  }
  return paths;
}

std::string EnginePath(const rpc::TaskFolder& folder, int variant,
                       const std::string& engine) {
  return JoinPath(folder.in(), EngineFile(variant, engine));
}

absl::Status CheckMeasured(const std::string& device,
                           const v1::Completion& completion) {
  if (!completion.has_benchmark() ||
      completion.benchmark().measurements().empty()) {
    return absl::InternalError("the task's process left no measurements");
  }
  for (const v1::Measurement& m : completion.benchmark().measurements()) {
    if (m.device() != device) {
      return absl::InternalError(absl::StrCat(
          "a measurement is of device '", m.device(), "', not '", device, "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace optfarm::device_agent
