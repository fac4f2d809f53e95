// Whole-file reads and durable writes, with errors that name the file.

#ifndef OPTFARM_BASE_FILES_H_
#define OPTFARM_BASE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm {

// Turns errno-style `error` into a Status: ENOENT NotFound, EACCES
// PermissionDenied, ENOSPC/EDQUOT ResourceExhausted ("disk full"), EEXIST
// AlreadyExists, otherwise Unavailable. The message is "`what`: reason".
absl::Status ErrnoToStatus(int error, absl::string_view what);

// Returns the file's bytes. UNITS: max_bytes in bytes.
// ERRORS: as ErrnoToStatus; FailedPrecondition for a folder; ResourceExhausted
// when the file is larger than max_bytes, decided before memory is taken.
absl::StatusOr<std::string> ReadFile(
    const std::string& path,
    uint64_t max_bytes = std::numeric_limits<int64_t>::max());

// Replaces `path` by a file with `bytes`, durably: written beside it, synced,
// renamed, folder synced. On error `path` is as it was and nothing is left.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view bytes);

// The same piece by piece, for what is too large to be held in memory whole.
// THREADS: one at a time. OWNERSHIP: a file that is not committed is removed by
// the destructor.
class AtomicFile {
 public:
  // ERRORS: as ErrnoToStatus.
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  absl::Status Append(absl::string_view bytes);
  // Makes the file appear under its path. Nothing may be appended afterwards.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd);
  void Discard();

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

// Reads a file from front to back. THREADS: one at a time.
class SequentialFile {
 public:
  // ERRORS: as ReadFile.
  static absl::StatusOr<SequentialFile> Open(const std::string& path);
  SequentialFile(SequentialFile&& other) noexcept;
  SequentialFile& operator=(SequentialFile&& other) noexcept;
  ~SequentialFile();

  // UNITS: bytes; 0 for pipes and the like.
  uint64_t size() const { return size_; }
  // Fills `buffer` as far as the file reaches; 0 at its end.
  // ERRORS: as ErrnoToStatus.
  absl::StatusOr<size_t> Read(char* buffer, size_t size);

 private:
  SequentialFile(std::string path, int fd, uint64_t size);

  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// Makes the folder and its parents. OK when it is there already.
absl::Status MakeFolders(const std::string& path);

// Makes a folder of the caller's own below `parent` (default: the system's
// folder for temporary files), named `prefix` + random letters, mode 0700.
absl::StatusOr<std::string> MakeTemporaryFolder(absl::string_view prefix,
                                                const std::string& parent = "");

// Removes a file or a folder with all that is in it. OK when absent.
absl::Status RemoveAll(const std::string& path);

// Names (not paths) of a folder's entries, sorted bytewise.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);

// UNITS: bytes.
absl::StatusOr<uint64_t> FileSize(const std::string& path);

bool Exists(const std::string& path);
bool IsFolder(const std::string& path);

// Joins two path pieces with exactly one '/'; an absolute `tail` wins.
std::string JoinPath(absl::string_view head, absl::string_view tail);

// The last piece of a path, and its extension in lower case without the dot
// ("" when there is none).
std::string BaseName(absl::string_view path);
std::string LowerExtension(absl::string_view path);

// Removes a folder when it goes out of scope.
class ScopedFolder {
 public:
  explicit ScopedFolder(std::string path) : path_(std::move(path)) {}
  ~ScopedFolder();
  ScopedFolder(const ScopedFolder&) = delete;
  ScopedFolder& operator=(const ScopedFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace optfarm

#endif  // OPTFARM_BASE_FILES_H_
