// The few file operations the blob store needs, behind an interface, so that
// tests can let the disk fill up or a sync fail at any point.

#ifndef OPTFARM_STORAGE_FILE_SYSTEM_H_
#define OPTFARM_STORAGE_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace optfarm::storage {

// A file open for appending.
// THREADS: one thread at a time. OWNERSHIP: the destructor closes it, unsynced.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  // Writes all of `bytes` at the end. On error some of them may be there.
  // ERRORS: ResourceExhausted on a full disk.
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // ENSURES: what was appended survives a power failure.
  virtual absl::Status Sync() = 0;
};

// A file open for reading; goes on working when the file is removed.
// THREADS: safe.
class ReadFileHandle {
 public:
  virtual ~ReadFileHandle() = default;
  // Returns at most `max_bytes` from `offset`; fewer only at the end.
  // UNITS: bytes.
  virtual absl::StatusOr<std::string> Read(int64_t offset,
                                           int64_t max_bytes) = 0;
};

struct FileInfo {
  // UNITS: bytes.
  int64_t size_bytes = 0;
  absl::Time modified;
};

// Errors are those of base/files.h's ErrnoToStatus.
// THREADS: safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Opens for appending; makes an empty file when there is none.
  virtual absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(
      const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadFileHandle>> OpenForRead(
      const std::string& path) = 0;
  virtual absl::StatusOr<FileInfo> Stat(const std::string& path) = 0;
  // Names of the entries, sorted; NotFound when the folder is not there.
  virtual absl::StatusOr<std::vector<std::string>> List(
      const std::string& folder) = 0;
  virtual absl::Status Rename(const std::string& from,
                              const std::string& to) = 0;
  // OK when there is no such file.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Makes a folder with its parents. OK when it is there.
  virtual absl::Status MakeFolders(const std::string& path) = 0;
  // ENSURES: names made or removed in `folder` survive a power failure.
  virtual absl::Status SyncFolder(const std::string& folder) = 0;
  // ENSURES: all names and files that are below `folder` now survive a power
  // failure.
  virtual absl::Status SyncAll(const std::string& folder) = 0;
  // Sets a file's modification time.
  virtual absl::Status Touch(const std::string& path, absl::Time time) = 0;
  // UNITS: bytes an unprivileged process may still write below `folder`.
  virtual absl::StatusOr<int64_t> FreeBytes(const std::string& folder) = 0;
};

// The machine's own. OWNERSHIP: lives for the whole process.
FileSystem* PosixFileSystem();

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_FILE_SYSTEM_H_
