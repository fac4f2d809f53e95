#include "worker/optimize_plan.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::worker {
namespace {

constexpr char kOptimizedGraph[] = "optimized.pb";
constexpr char kDataFolder[] = "data";
constexpr char kArrayFolder[] = "arrays";
constexpr char kLabels[] = "labels/labels.txt";

// Keeps the user's file name where it can be one: messages speak of it.
std::string ModelPath(const v1::OptimizeTask& task) {
  const std::string name = BaseName(task.model().name());
  const bool usable = rpc::CheckRelativePath(name).ok() && name.size() <= 200;
  return absl::StrCat("model/", usable ? name : "model.pb");
}

// Files that feed one input by name, as opposed to a folder's.
bool IsArray(const v1::DatasetFile& file) {
  return LowerExtension(file.path()) == "npy" ||
         file.path().starts_with("arrays/");
}

// "FILE:MEMBER" where a member is named.
std::string WithMember(std::string path, absl::string_view member) {
  return member.empty() ? path : absl::StrCat(path, ":", member);
}

// The labels' feature stands behind their file's name.
absl::string_view LabelsMember(absl::string_view name) {
  const size_t colon = name.rfind(':');
  return colon == name.npos ? "" : name.substr(colon + 1);
}

// Arrays lie apart, so that the folder of samples holds nothing else.
std::string DataPath(const v1::DatasetFile& file) {
  return absl::StrCat(IsArray(file) ? kArrayFolder : kDataFolder, "/",
                      file.path());
}

}  // namespace

absl::StatusOr<std::vector<rpc::TaskInput>> OptimizeInputs(
    const v1::LeasedTask& lease) {
  if (!lease.has_optimize()) {
    return absl::InvalidArgumentError(
        "the server leased something else than an optimize task to a worker");
  }
  const v1::OptimizeTask& task = lease.optimize();
  std::vector<rpc::TaskInput> inputs;
  inputs.push_back({task.model().digest(), ModelPath(task)});
  if (task.has_labels()) inputs.push_back({task.labels().digest(), kLabels});
  absl::flat_hash_set<std::string> seen;
  for (const v1::DatasetFile& file : task.calibration().files()) {
    OPTFARM_RETURN_IF_ERROR(
        Annotate(rpc::CheckRelativePath(file.path()), "calibration data"));
    if (!seen.insert(file.path()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("calibration data lists '", file.path(), "' twice"));
    }
    inputs.push_back({file.digest(), DataPath(file)});
  }
  return inputs;
}

optimize::OptimizeRequest OptimizeRequestFor(const v1::LeasedTask& lease,
                                             const rpc::TaskFolder& folder) {
  const v1::OptimizeTask& task = lease.optimize();
  optimize::OptimizeRequest request;
  request.model_path = JoinPath(folder.in(), ModelPath(task));
  request.recipe = task.recipe();
  request.inputs.assign(task.inputs().begin(), task.inputs().end());
  request.outputs.assign(task.outputs().begin(), task.outputs().end());
  for (const v1::DatasetFile& file : task.calibration().files()) {
    if (IsArray(file)) {
      request.calibration_arrays.emplace_back(
          file.input(),
          WithMember(JoinPath(folder.in(), DataPath(file)), file.member()));
    } else {
      request.calibration_folder = JoinPath(folder.in(), kDataFolder);
    }
  }
  const double mean = task.calibration().input_mean();
  const double std = task.calibration().input_std();
  // Both are 0 where nobody said anything.
  if (mean != 0 || std != 0) {
    request.input_mean = mean;
    request.input_std = std == 0 ? 1 : std;
  }
  request.labels_offset = task.calibration().labels_offset();
  if (task.has_labels()) {
    request.labels_path = WithMember(JoinPath(folder.in(), kLabels),
                                     LabelsMember(task.labels().name()));
  }
  if (task.has_model_origin()) request.model_origin = task.model_origin();
  request.out_folder = folder.out();
  return request;
}

std::string WithoutFolder(absl::string_view text,
                          const rpc::TaskFolder& folder) {
  // The longest that fits is taken.
  return absl::StrReplaceAll(
      text, {{absl::StrCat(JoinPath(folder.in(), kArrayFolder), "/"), ""},
             {absl::StrCat(JoinPath(folder.in(), kDataFolder), "/"), ""},
             {absl::StrCat(folder.in(), "/"), ""}});
}

absl::Status FinishReport(const v1::LeasedTask& lease,
                          const std::vector<v1::Artifact>& artifacts,
                          v1::Completion* completion) {
  if (!completion->has_report()) {
    return absl::InternalError("the task's process left no report");
  }
  v1::Report& report = *completion->mutable_report();
  report.clear_artifacts();
  report.clear_optimized_model();
  for (const v1::Artifact& artifact : artifacts) {
    *report.add_artifacts() = artifact;
    if (artifact.name() == kOptimizedGraph) {
      *report.mutable_optimized_model() = artifact.digest();
    }
  }
  if (!report.has_optimized_model()) {
    return absl::InternalError(
        absl::StrCat("the task's process left no '", kOptimizedGraph, "'"));
  }
  report.set_recipe_name(lease.optimize().recipe().name());
  *report.mutable_model() = lease.optimize().model().digest();
  return absl::OkStatus();
}

}  // namespace optfarm::worker
