// A real file system with a disk that fills up and syncs that fail when a test
// says so.

#ifndef OPTFARM_TESTS_STORAGE_FAULTY_FILE_SYSTEM_H_
#define OPTFARM_TESTS_STORAGE_FAULTY_FILE_SYSTEM_H_

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "storage/file_system.h"

namespace optfarm::storage {

// THREADS: one thread at a time. OWNERSHIP: outlives what it opens.
class FaultyFileSystem final : public FileSystem {
 public:
  // UNITS: bytes that can still be written before the disk is full.
  int64_t room = std::numeric_limits<int64_t>::max();
  // UNITS: bytes that FreeBytes reports; -1: the truth.
  int64_t reported_free_bytes = -1;
  bool fail_file_sync = false;
  bool fail_folder_sync = false;
  bool fail_rename = false;

  absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(
      const std::string& path) override {
    auto file = PosixFileSystem()->OpenForAppend(path);
    if (!file.ok()) return file.status();
    return std::make_unique<FaultyFile>(*this, *std::move(file));
  }
  absl::StatusOr<std::unique_ptr<ReadFileHandle>> OpenForRead(
      const std::string& path) override {
    return PosixFileSystem()->OpenForRead(path);
  }
  absl::StatusOr<FileInfo> Stat(const std::string& path) override {
    return PosixFileSystem()->Stat(path);
  }
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& folder) override {
    return PosixFileSystem()->List(folder);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (fail_rename) return ErrnoToStatus(EIO, "renaming");
    return PosixFileSystem()->Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override {
    return PosixFileSystem()->Remove(path);
  }
  absl::Status MakeFolders(const std::string& path) override {
    return PosixFileSystem()->MakeFolders(path);
  }
  absl::Status SyncFolder(const std::string& folder) override {
    if (fail_folder_sync) return ErrnoToStatus(EIO, "syncing a folder");
    return PosixFileSystem()->SyncFolder(folder);
  }
  absl::Status SyncAll(const std::string& folder) override {
    if (fail_folder_sync) return ErrnoToStatus(EIO, "syncing all");
    return PosixFileSystem()->SyncAll(folder);
  }
  absl::Status Touch(const std::string& path, absl::Time time) override {
    return PosixFileSystem()->Touch(path, time);
  }
  absl::StatusOr<int64_t> FreeBytes(const std::string& folder) override {
    if (reported_free_bytes >= 0) return reported_free_bytes;
    return PosixFileSystem()->FreeBytes(folder);
  }

 private:
  class FaultyFile final : public AppendFile {
   public:
    FaultyFile(FaultyFileSystem& owner, std::unique_ptr<AppendFile> file)
        : owner_(owner), file_(std::move(file)) {}

    // Writes what fits, as a real disk does.
    absl::Status Append(absl::string_view bytes) override {
      const int64_t fits =
          std::min(owner_.room, static_cast<int64_t>(bytes.size()));
      owner_.room -= fits;
      const absl::Status status =
          file_->Append(bytes.substr(0, static_cast<size_t>(fits)));
      if (!status.ok()) return status;
      if (fits == static_cast<int64_t>(bytes.size())) return status;
      return ErrnoToStatus(ENOSPC, "writing");
    }
    absl::Status Sync() override {
      if (owner_.fail_file_sync) return ErrnoToStatus(EIO, "syncing");
      return file_->Sync();
    }

   private:
    FaultyFileSystem& owner_;
    const std::unique_ptr<AppendFile> file_;
  };
};

}  // namespace optfarm::storage

#endif  // OPTFARM_TESTS_STORAGE_FAULTY_FILE_SYSTEM_H_
