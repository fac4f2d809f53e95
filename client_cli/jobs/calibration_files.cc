#include "client_cli/jobs/calibration_files.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/optimize/samples/sample_files.h"

namespace optfarm::client_cli {
namespace {

// As the contract of Dataset allows.
constexpr size_t kMostFiles = 20000;
// A link that leads back up would otherwise never end.
constexpr int kDeepest = 32;

bool IsSample(const std::string& name) {
  const std::string extension = LowerExtension(name);
  return extension == "jpg" || extension == "jpeg" || extension == "png" ||
         extension == "wav" || optimize::IsRecordsName(name);
}

absl::Status Collect(const std::string& folder, const std::string& prefix,
                     int depth, CalibrationFiles* found) {
  if (depth > kDeepest) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "'", folder, "' is more than ", kDeepest, " folders deep"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListFolder(folder));
  for (const std::string& name : names) {
    if (name.empty() || name[0] == '.') continue;
    const std::string path = JoinPath(folder, name);
    if (IsFolder(path)) {
      OPTFARM_RETURN_IF_ERROR(
          Collect(path, absl::StrCat(prefix, name, "/"), depth + 1, found));
      continue;
    }
    if (!IsSample(name)) {
      ++found->others;
      continue;
    }
    if (found->paths.size() == kMostFiles) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "more than ", kMostFiles, " samples; a job takes at most that many"));
    }
    found->paths.push_back(absl::StrCat(prefix, name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CalibrationFiles> FindCalibrationFiles(
    const std::string& folder) {
  CalibrationFiles found;
  OPTFARM_RETURN_IF_ERROR(Collect(folder, "", 0, &found));
  if (found.paths.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", folder,
                     "' has no .jpg, .jpeg, .png, .wav or .tfrecord file in it "
                     "or its subfolders"));
  }
  std::sort(found.paths.begin(), found.paths.end());
  return found;
}

}  // namespace optfarm::client_cli
