#include "storage/sqlite/durable_log.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

// The largest page of SQLite. Its VFS for Unix writes nothing of 128 KiB and
// calls that a full disk.
constexpr int64_t kPieceBytes = 1 << 16;

absl::Status Check(int result, absl::string_view doing,
                   const std::string& path) {
  if (result == SQLITE_OK) return absl::OkStatus();
  const std::string message =
      absl::StrCat(doing, " '", path, "': ", sqlite3_errstr(result));
  return (result & 0xff) == SQLITE_FULL
             ? absl::ResourceExhaustedError(
                   absl::StrCat(message, "; free space on the disk"))
             : absl::UnavailableError(
                   absl::StrCat(message, "; see that its disk works"));
}

// A file through SQLite's own functions: its locks are those of connections,
// and tests can put a disk of theirs under both.
class VfsFile {
 public:
  explicit VfsFile(sqlite3_vfs* vfs)
      : vfs_(vfs), memory_(static_cast<size_t>(vfs->szOsFile)) {}
  ~VfsFile() {
    if (methods() != nullptr) methods()->xClose(file());
  }
  VfsFile(const VfsFile&) = delete;
  VfsFile& operator=(const VfsFile&) = delete;

  absl::Status Open(const std::string& path, int flags) {
    path_ = path;
    // What SQLite makes of a file's name ends with two more zeros, for what a
    // URI could say of it.
    name_.assign(path.begin(), path.end());
    name_.insert(name_.end(), 3, '\0');
    int opened = 0;
    return Check(vfs_->xOpen(vfs_, name_.data(), file(),
                             SQLITE_OPEN_READWRITE | flags, &opened),
                 "opening", path_);
  }

  // False while anybody else has a lock.
  absl::StatusOr<bool> LockAlone() {
    for (const int level : {SQLITE_LOCK_SHARED, SQLITE_LOCK_EXCLUSIVE}) {
      const int result = methods()->xLock(file(), level);
      if ((result & 0xff) == SQLITE_BUSY) return false;
      OPTFARM_RETURN_IF_ERROR(Check(result, "locking", path_));
    }
    return true;
  }

  absl::Status WriteOverItself() {
    sqlite3_int64 size = 0;
    OPTFARM_RETURN_IF_ERROR(
        Check(methods()->xFileSize(file(), &size), "looking at", path_));
    std::vector<char> piece(
        static_cast<size_t>(std::min<int64_t>(size, kPieceBytes)));
    for (sqlite3_int64 at = 0; at < size;) {
      const int length =
          static_cast<int>(std::min<int64_t>(kPieceBytes, size - at));
      OPTFARM_RETURN_IF_ERROR(
          Check(methods()->xRead(file(), piece.data(), length, at), "reading",
                path_));
      OPTFARM_RETURN_IF_ERROR(
          Check(methods()->xWrite(file(), piece.data(), length, at),
                "rewriting", path_));
      at += length;
    }
    return Check(methods()->xSync(file(), SQLITE_SYNC_NORMAL), "syncing",
                 path_);
  }

 private:
  sqlite3_file* file() {
    return reinterpret_cast<sqlite3_file*>(memory_.data());
  }
  const sqlite3_io_methods* methods() { return file()->pMethods; }

  sqlite3_vfs* const vfs_;
  // Begins at an address that fits every type.
  std::vector<char> memory_;
  std::string path_;
  std::vector<char> name_;
};

// The log is beside the file that a symbolic link leads to.
absl::StatusOr<std::string> RealPath(sqlite3_vfs* vfs,
                                     const std::string& path) {
  std::string real(static_cast<size_t>(vfs->mxPathname) + 1, '\0');
  // SQLITE_OK_SYMLINK is no failure either.
  const int result = vfs->xFullPathname(
      vfs, path.c_str(), static_cast<int>(real.size()), real.data());
  OPTFARM_RETURN_IF_ERROR(Check(result & 0xff, "looking for", path));
  real.resize(real.find('\0'));
  return real;
}

absl::StatusOr<bool> IsThere(sqlite3_vfs* vfs, const std::string& path) {
  int exists = 0;
  OPTFARM_RETURN_IF_ERROR(
      Check(vfs->xAccess(vfs, path.c_str(), SQLITE_ACCESS_EXISTS, &exists),
            "looking for", path));
  return exists != 0;
}

}  // namespace

absl::Status MakeLogDurable(const std::string& path) {
  sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  if (vfs == nullptr) return absl::InternalError("SQLite has no file system");
  OPTFARM_ASSIGN_OR_RETURN(const std::string file, RealPath(vfs, path));
  const std::string log_file = file + "-wal";
  for (const std::string& needed : {log_file, file}) {
    OPTFARM_ASSIGN_OR_RETURN(const bool there, IsThere(vfs, needed));
    if (!there) return absl::OkStatus();
  }
  // Whoever uses a log has the database locked all the time.
  VfsFile database(vfs);
  OPTFARM_RETURN_IF_ERROR(database.Open(file, SQLITE_OPEN_MAIN_DB));
  OPTFARM_ASSIGN_OR_RETURN(const bool alone, database.LockAlone());
  if (!alone) return absl::OkStatus();
  VfsFile log(vfs);
  OPTFARM_RETURN_IF_ERROR(log.Open(log_file, SQLITE_OPEN_WAL));
  return log.WriteOverItself();
}

}  // namespace optfarm::storage
