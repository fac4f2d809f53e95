#include "server/upkeep/server_backup.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/file_system.h"
#include "storage/sqlite/backup.h"

namespace optfarm::server {
namespace {

constexpr absl::string_view kHeader = "optfarm backup 1";
constexpr absl::string_view kEnd = "end ";
constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxUptimeBytes = uint64_t{1} << 20;

struct Part {
  // In a backup, after its name.
  std::string suffix;
  // In the data folder.
  std::string path;
};

// The metadata come first.
std::vector<Part> PartsOf(const DataDir& data_dir) {
  return {{".db", data_dir.database()},
          {".tokens.db", data_dir.tokens()},
          {".webhooks.db", data_dir.webhooks()},
          {".audit.db", data_dir.audit()},
          {".tunes.db", data_dir.tunes()}};
}

// Removes its files unless they are kept.
class NewFiles {
 public:
  ~NewFiles() {
    for (const std::string& path : paths_) {
      storage::PosixFileSystem()->Remove(path).IgnoreError();
    }
  }
  void Add(std::string path) { paths_.push_back(std::move(path)); }
  void Keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

// "file SUFFIX SIZE SHA256"
absl::StatusOr<std::string> FileLine(const std::string& path,
                                     const std::string& suffix) {
  OPTFARM_ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
  OPTFARM_ASSIGN_OR_RETURN(const std::string sha256, Sha256OfFile(path));
  return absl::StrCat("file ", suffix, " ", size, " ", sha256, "\n");
}

// "rows SUFFIX TABLE ROWS" for each table.
absl::StatusOr<std::string> RowLines(const std::string& path,
                                     const std::string& suffix) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<storage::TableRows> tables,
                           storage::CheckSqliteFile(path));
  std::string lines;
  for (const storage::TableRows& table : tables) {
    absl::StrAppend(&lines, "rows ", suffix, " ", table.table, " ", table.rows,
                    "\n");
  }
  return lines;
}

// "blob SHA256 SIZE", or "gone SHA256" for one that had been removed.
absl::StatusOr<std::string> BlobLines(const std::string& metadata,
                                      storage::BlobStore& blobs) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           storage::BlobsOfSqliteMetadata(metadata));
  std::string lines;
  for (const std::string& sha256 : names) {
    const auto reader = blobs.OpenBlob(sha256);
    if (reader.ok()) {
      absl::StrAppend(&lines, "blob ", sha256, " ", (*reader)->size_bytes(),
                      "\n");
    } else if (absl::IsNotFound(reader.status())) {
      absl::StrAppend(&lines, "gone ", sha256, "\n");
    } else {
      return reader.status();
    }
  }
  return lines;
}

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the backup '", path, "' ", what, "; restore another one"));
}

// Its lines, without the last one.
absl::StatusOr<std::vector<std::string>> ReadManifest(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxManifestBytes));
  const size_t end = text.rfind(std::string(kEnd));
  if (!absl::StartsWith(text, absl::StrCat(kHeader, "\n")) ||
      end == std::string::npos || text[end - 1] != '\n') {
    return Damaged(path, "has a manifest of another form, or half of one");
  }
  const std::string sha256 = text.substr(end + kEnd.size());
  text.resize(end);
  if (absl::StripSuffix(sha256, "\n") != Sha256Hex(text)) {
    return Damaged(path, "has a manifest that was changed");
  }
  return std::vector<std::string>(absl::StrSplit(text, '\n'));
}

// Lines that begin like that, as one text.
std::string LinesOf(const std::vector<std::string>& lines,
                    absl::string_view beginning) {
  std::string found;
  for (const std::string& line : lines) {
    if (absl::StartsWith(line, beginning)) absl::StrAppend(&found, line, "\n");
  }
  return found;
}

absl::Status CheckFile(const std::vector<std::string>& lines,
                       const std::string& path, const std::string& suffix) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string line, FileLine(path, suffix));
  if (line == LinesOf(lines, absl::StrCat("file ", suffix, " "))) {
    return absl::OkStatus();
  }
  return Damaged(path, "is not what its manifest says");
}

absl::Status RestoreDatabase(const std::vector<std::string>& lines,
                             const std::string& source, const Part& part) {
  OPTFARM_RETURN_IF_ERROR(CheckFile(lines, source, part.suffix));
  OPTFARM_RETURN_IF_ERROR(storage::BackupSqlite(source, part.path));
  OPTFARM_ASSIGN_OR_RETURN(const std::string rows,
                           RowLines(part.path, part.suffix));
  if (rows == LinesOf(lines, absl::StrCat("rows ", part.suffix, " "))) {
    return absl::OkStatus();
  }
  return Damaged(source, "has other rows than its manifest says");
}

void CountBlobs(const std::vector<std::string>& lines,
                storage::BlobStore& blobs, RestoredBackup& restored) {
  for (const std::string& line : lines) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    int64_t size = 0;
    if (words.size() != 3 || words[0] != "blob" ||
        !absl::SimpleAtoi(words[2], &size)) {
      continue;
    }
    ++restored.blobs;
    const auto reader = blobs.OpenBlob(words[1]);
    if (reader.ok() && (*reader)->size_bytes() == size) continue;
    ++restored.missing_blobs;
    LogWarning("the file ", words[1], " of ", size, " bytes is missing");
  }
}

absl::Status CheckEmpty(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    if (!Exists(part.path)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("there is already a database '", part.path,
                     "'; restore into an empty --data_dir"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteServerBackup(storage::MetadataStore& store,
                               storage::BlobStore& blobs,
                               const DataDir& data_dir, const std::string& name,
                               absl::Time now) {
  OPTFARM_RETURN_IF_ERROR(MakeFolders(data_dir.backups()));
  const std::string stem = JoinPath(data_dir.backups(), name);
  std::string manifest =
      absl::StrCat(kHeader, "\ntime ", absl::ToUnixSeconds(now), "\n");
  NewFiles files;
  for (const Part& part : PartsOf(data_dir)) {
    const std::string path = stem + part.suffix;
    OPTFARM_RETURN_IF_ERROR(part.suffix == ".db"
                                ? store.Backup(path)
                                : storage::BackupSqlite(part.path, path));
    files.Add(path);
    OPTFARM_ASSIGN_OR_RETURN(const std::string rows,
                             RowLines(path, part.suffix));
    OPTFARM_ASSIGN_OR_RETURN(const std::string file,
                             FileLine(path, part.suffix));
    absl::StrAppend(&manifest, file, rows);
  }
  if (Exists(data_dir.uptime())) {
    OPTFARM_ASSIGN_OR_RETURN(const std::string uptime,
                             ReadFile(data_dir.uptime(), kMaxUptimeBytes));
    files.Add(stem + ".uptime");
    OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(stem + ".uptime", uptime));
    OPTFARM_ASSIGN_OR_RETURN(const std::string file,
                             FileLine(stem + ".uptime", ".uptime"));
    manifest += file;
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string listed,
                           BlobLines(stem + ".db", blobs));
  manifest += listed;
  const std::string digest = Sha256Hex(manifest);
  files.Add(stem + ".manifest");
  OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(
      stem + ".manifest", absl::StrCat(manifest, kEnd, digest, "\n")));
  files.Keep();
  return absl::OkStatus();
}

absl::StatusOr<RestoredBackup> RestoreServerBackup(const std::string& manifest,
                                                   const DataDir& data_dir,
                                                   storage::BlobStore& blobs) {
  const std::string stem(absl::StripSuffix(manifest, ".manifest"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                           ReadManifest(stem + ".manifest"));
  const std::vector<Part> parts = PartsOf(data_dir);
  OPTFARM_RETURN_IF_ERROR(CheckEmpty(parts));
  RestoredBackup restored;
  int64_t seconds = 0;
  const std::string time = LinesOf(lines, "time ");
  if (absl::SimpleAtoi(absl::StripPrefix(time, "time "), &seconds)) {
    restored.time = absl::FromUnixSeconds(seconds);
  }
  NewFiles files;
  // The metadata last: without them a server would begin anew.
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    files.Add(part->path);
    OPTFARM_RETURN_IF_ERROR(RestoreDatabase(lines, stem + part->suffix, *part));
  }
  if (!LinesOf(lines, "file .uptime ").empty()) {
    OPTFARM_RETURN_IF_ERROR(CheckFile(lines, stem + ".uptime", ".uptime"));
    OPTFARM_ASSIGN_OR_RETURN(const std::string uptime,
                             ReadFile(stem + ".uptime", kMaxUptimeBytes));
    OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(data_dir.uptime(), uptime));
  }
  CountBlobs(lines, blobs, restored);
  files.Keep();
  return restored;
}

}  // namespace optfarm::server
