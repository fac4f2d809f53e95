#include "engine/optimize/samples/sample_files.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::optimize {
namespace {

constexpr size_t kMaxFiles = 1'000'000;
constexpr int kMaxFolderDepth = 16;

using FilesByKind = std::map<SampleKind, std::vector<std::string>>;

std::optional<SampleKind> KindOf(const std::string& path) {
  const std::string extension = LowerExtension(path);
  if (extension == "jpg" || extension == "jpeg" || extension == "png") {
    return SampleKind::kPicture;
  }
  if (extension == "wav") return SampleKind::kSound;
  if (IsRecordsName(path)) return SampleKind::kRecords;
  return std::nullopt;
}

const char* NameOf(SampleKind kind) {
  switch (kind) {
    case SampleKind::kPicture:
      return "pictures";
    case SampleKind::kSound:
      return "sounds";
    default:
      return "record files";
  }
}

absl::Status Find(const std::string& root, const std::string& below, int depth,
                  size_t* count, FilesByKind* files) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListFolder(JoinPath(root, below)));
  for (const std::string& name : names) {
    const std::string path = below.empty() ? name : JoinPath(below, name);
    if (IsFolder(JoinPath(root, path))) {
      if (depth < kMaxFolderDepth) {
        OPTFARM_RETURN_IF_ERROR(Find(root, path, depth + 1, count, files));
      }
    } else if (const auto kind = KindOf(path)) {
      (*files)[*kind].push_back(path);
      ++*count;
    }
    if (*count > kMaxFiles) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Folder '", root, "' has more than ", kMaxFiles, " samples"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsRecordsName(const std::string& path) {
  const std::string extension = LowerExtension(path);
  return extension == "tfrecord" || extension == "tfrecords" ||
         extension == "record";
}

absl::StatusOr<SampleFiles> FindSampleFiles(const std::string& folder) {
  if (!IsFolder(folder)) {
    return absl::NotFoundError(
        absl::StrCat("Calibration folder '", folder, "' is ",
                     Exists(folder) ? "a file; give a folder, or NAME=FILE.npy"
                                    : "not there"));
  }
  FilesByKind files;
  size_t count = 0;
  OPTFARM_RETURN_IF_ERROR(Find(folder, "", 0, &count, &files));
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Calibration folder '", folder,
        "' has no .jpg, .jpeg, .png, .wav or .tfrecord files; an array is "
        "given as NAME=FILE.npy"));
  }
  if (files.size() > 1) {
    std::vector<std::string> kinds;
    for (auto at = files.rbegin(); at != files.rend(); ++at) {
      kinds.push_back(absl::StrCat(at->second.size(), " ", NameOf(at->first)));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("Calibration folder '", folder, "' mixes ",
                     absl::StrJoin(kinds, " with "), "; give one kind"));
  }
  return SampleFiles{files.begin()->first, std::move(files.begin()->second)};
}

}  // namespace optfarm::optimize
