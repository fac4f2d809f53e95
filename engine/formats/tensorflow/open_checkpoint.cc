// Finds out what a user's path names: which of the formats, which files.

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/checkpoint.h"
#include "engine/formats/tensorflow/checkpoint_v1.h"
#include "engine/formats/tensorflow/tensor_bundle.h"

namespace optfarm::formats {
namespace {

bool IsFile(const std::string& path) { return Exists(path) && !IsFolder(path); }

bool IsBundle(const std::string& prefix) {
  return IsFile(absl::StrCat(prefix, ".index"));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// "x.data-00000-of-00002" -> "x", and "x.index" -> "x"; else the text itself.
std::string WithoutBundleEnding(absl::string_view path) {
  if (absl::ConsumeSuffix(&path, ".index")) return std::string(path);
  const size_t data = path.rfind(".data-");
  if (data != absl::string_view::npos &&
      absl::StrContains(path.substr(data), "-of-")) {
    path = path.substr(0, data);
  }
  return std::string(path);
}

// The number of shards in "NAME-00001-of-00002" or "NAME-?????-of-00002", and
// NAME; 0 when it is no such name.
int SplitShardName(absl::string_view path, std::string* stem) {
  constexpr size_t kEnding = 15;  // -00001-of-00002
  if (path.size() <= kEnding) return 0;
  const absl::string_view ending = path.substr(path.size() - kEnding);
  int count = 0;
  if (ending[0] != '-' || ending.substr(6, 4) != "-of-" ||
      !absl::SimpleAtoi(ending.substr(10), &count) || count < 1 ||
      count > 99999) {
    return 0;
  }
  *stem = std::string(path.substr(0, path.size() - kEnding));
  return count;
}

// All shards of a V1 checkpoint, told by one of their names or the stem.
std::vector<std::string> ShardsOf(const std::string& path) {
  std::vector<std::string> shards;
  std::string stem;
  int count = SplitShardName(path, &stem);
  if (count == 0) {
    stem = path;
    const auto names = ListFolder(FolderOf(path));
    if (!names.ok()) return shards;
    std::string other;
    for (const std::string& name : *names) {
      const int number = SplitShardName(name, &other);
      if (number > 0 && other == BaseName(path)) count = number;
    }
  }
  for (int i = 0; i < count; ++i) {
    shards.push_back(absl::StrFormat("%s-%05d-of-%05d", stem, i, count));
  }
  return shards;
}

// "; it has the checkpoints 'a', 'b'" for the end of a message, or "".
std::string CheckpointsIn(const std::string& folder) {
  std::vector<std::string> found;
  const auto names = ListFolder(folder);
  if (!names.ok()) return "";
  for (absl::string_view name : *names) {
    if (absl::ConsumeSuffix(&name, ".index") && found.size() < 5) {
      found.push_back(absl::StrCat("'", JoinPath(folder, name), "'"));
    }
  }
  if (found.empty()) return "";
  return absl::StrCat("; there ", found.size() == 1 ? "is " : "are ",
                      absl::StrJoin(found, ", "));
}

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenV1(
    const std::string& name, const std::vector<std::string>& paths) {
  std::vector<std::unique_ptr<RandomAccessFile>> files;
  for (const std::string& path : paths) {
    OPTFARM_ASSIGN_OR_RETURN(auto file, RandomAccessFile::Open(path));
    files.push_back(std::move(file));
  }
  return OpenCheckpointV1(name, std::move(files));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(
    const std::string& path) {
  if (IsBundle(path)) return OpenTensorBundle(path);
  const std::string prefix = WithoutBundleEnding(path);
  if (prefix != path && IsBundle(prefix)) return OpenTensorBundle(prefix);
  std::string stem;
  if (IsFile(path) && SplitShardName(path, &stem) == 0) {
    return OpenV1(path, {path});
  }
  if (IsFolder(path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "checkpoint '", path,
        "' is a folder; give the checkpoint's prefix (the path of its .index "
        "file without .index)",
        CheckpointsIn(path)));
  }
  if (absl::StrContains(path, ',')) {
    std::vector<std::string> paths;
    for (const absl::string_view piece :
         absl::StrSplit(path, ',', absl::SkipWhitespace())) {
      paths.emplace_back(absl::StripAsciiWhitespace(piece));
    }
    return OpenV1(path, paths);
  }
  const std::vector<std::string> shards = ShardsOf(path);
  if (!shards.empty()) return OpenV1(path, shards);
  return absl::NotFoundError(
      absl::StrCat("there is no checkpoint '", path, "': neither '", path,
                   ".index' (V2) nor a file '", path, "' (V1)",
                   CheckpointsIn(FolderOf(path))));
}

}  // namespace optfarm::formats
