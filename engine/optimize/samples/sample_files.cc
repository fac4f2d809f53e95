#include "engine/optimize/samples/sample_files.h"

#include <algorithm>
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

// As the contract of DataSource allows.
constexpr size_t kMostFiles = 20000;
// A link that leads back up would otherwise never end.
constexpr int kDeepest = 32;

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

// Part by part: "a/2" comes before "a-b/1", because "a" does before "a-b".
bool ComesBefore(const std::string& a, const std::string& b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        const auto rank = [](char c) {
          return c == '/' ? 0 : static_cast<unsigned char>(c);
        };
        return rank(x) < rank(y);
      });
}

absl::Status Collect(const std::string& folder, const std::string& prefix,
                     int depth, FoundSamples* found) {
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
    if (!KindOf(name).has_value()) {
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

bool IsRecordsName(const std::string& path) {
  const std::string extension = LowerExtension(path);
  return extension == "tfrecord" || extension == "tfrecords" ||
         extension == "record";
}

absl::StatusOr<FoundSamples> FindSampleFiles(const std::string& folder) {
  if (!IsFolder(folder)) {
    return absl::NotFoundError(
        absl::StrCat("Calibration folder '", folder, "' is ",
                     Exists(folder) ? "a file; give a folder, or NAME=FILE.npy"
                                    : "not there"));
  }
  FoundSamples found;
  OPTFARM_RETURN_IF_ERROR(Collect(folder, "", 0, &found));
  if (found.paths.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", folder,
                     "' has no .jpg, .jpeg, .png, .wav or .tfrecord file in it "
                     "or its subfolders; an array is given as NAME=FILE.npy"));
  }
  std::sort(found.paths.begin(), found.paths.end(), ComesBefore);
  return found;
}

absl::StatusOr<SampleFiles> SelectSampleFiles(std::vector<std::string> paths) {
  std::map<SampleKind, std::vector<std::string>> files;
  for (std::string& path : paths) {
    const std::optional<SampleKind> kind = KindOf(path);
    if (kind.has_value()) files[*kind].push_back(std::move(path));
  }
  if (files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("None of the ", paths.size(),
                     " sample files is named .jpg, .jpeg, .png, .wav or "
                     ".tfrecord; an array is given as NAME=FILE.npy"));
  }
  if (files.size() > 1) {
    std::vector<std::string> kinds;
    for (auto at = files.rbegin(); at != files.rend(); ++at) {
      kinds.push_back(absl::StrCat(at->second.size(), " ", NameOf(at->first)));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "The samples mix ", absl::StrJoin(kinds, " with "), "; give one kind"));
  }
  auto& [kind, found] = *files.begin();
  std::sort(found.begin(), found.end(), ComesBefore);
  return SampleFiles{kind, std::move(found)};
}

}  // namespace optfarm::optimize
