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

// Keeps the user's file name where it can be one: messages speak of it.
std::string ModelPath(const v1::OptimizeTask& task) {
  const std::string name = BaseName(task.model().name());
  const bool usable = rpc::CheckRelativePath(name).ok() && name.size() <= 200;
  return absl::StrCat("model/", usable ? name : "model.pb");
}

// Below the task's inputs. Each source has a folder of its own, so that equal
// names do not meet.
std::string SourceFolder(int source) { return absl::StrCat("data/", source); }

// What the server sends to workers that read no sources.
bool HasDeprecatedData(const v1::OptimizeTask& task) {
  return task.calibration().sources().empty() &&
         task.calibration().ByteSizeLong() > 0;
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
  if (HasDeprecatedData(task)) {
    return absl::FailedPreconditionError(
        "the server describes the task's data in a form of before this "
        "worker's version; upgrade the server first");
  }
  for (int i = 0; i < task.calibration().sources_size(); ++i) {
    absl::flat_hash_set<std::string> seen;
    for (const v1::DataFile& file : task.calibration().sources(i).files()) {
      OPTFARM_RETURN_IF_ERROR(
          Annotate(rpc::CheckRelativePath(file.path()), "calibration data"));
      if (!seen.insert(file.path()).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("calibration data lists '", file.path(), "' twice"));
      }
      inputs.push_back({file.digest(), JoinPath(SourceFolder(i), file.path())});
    }
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
  for (const int format : task.out_formats()) {
    request.out_formats.push_back(static_cast<v1::ModelFormat>(format));
  }
  request.data.dataset = task.calibration();
  for (int i = 0; i < task.calibration().sources_size(); ++i) {
    request.data.folders.push_back(JoinPath(folder.in(), SourceFolder(i)));
  }
  if (task.has_model_origin()) request.model_origin = task.model_origin();
  request.out_folder = folder.out();
  return request;
}

std::string WithoutFolder(absl::string_view text, const v1::LeasedTask& lease,
                          const rpc::TaskFolder& folder) {
  std::vector<std::pair<std::string, std::string>> shorter = {
      {absl::StrCat(folder.in(), "/"), ""}};
  const v1::Dataset& data = lease.optimize().calibration();
  for (int i = 0; i < data.sources_size(); ++i) {
    const std::string path = JoinPath(folder.in(), SourceFolder(i));
    shorter.emplace_back(absl::StrCat(path, "/"), "");
    if (data.sources(i).role() != v1::DataSource::SAMPLES) continue;
    shorter.emplace_back(absl::StrCat(path, "'"), "the samples'");
  }
  // The longest that fits is taken.
  return absl::StrReplaceAll(text, shorter);
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
