// FileSystem on the operating system's calls.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "storage/file_system.h"

namespace optfarm::storage {
namespace {

absl::Status Failed(absl::string_view doing, const std::string& path) {
  return ErrnoToStatus(errno, absl::StrCat(doing, " '", path, "'"));
}

class PosixAppendFile final : public AppendFile {
 public:
  PosixAppendFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixAppendFile() override { ::close(fd_); }

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Failed("writing", path_);
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    return ::fsync(fd_) == 0 ? absl::OkStatus() : Failed("syncing", path_);
  }

 private:
  const int fd_;
  const std::string path_;
};

class PosixReadFile final : public ReadFileHandle {
 public:
  PosixReadFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixReadFile() override { ::close(fd_); }

  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) override {
    std::string bytes(static_cast<size_t>(max_bytes), '\0');
    size_t filled = 0;
    while (filled < bytes.size()) {
      const ssize_t n =
          ::pread(fd_, bytes.data() + filled, bytes.size() - filled,
                  static_cast<off_t>(offset + static_cast<int64_t>(filled)));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Failed("reading", path_);
      if (n == 0) break;
      filled += static_cast<size_t>(n);
    }
    bytes.resize(filled);
    return bytes;
  }

 private:
  const int fd_;
  const std::string path_;
};

class PosixFiles final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<AppendFile>> OpenForAppend(
      const std::string& path) override {
    const int fd =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return Failed("opening", path);
    return std::make_unique<PosixAppendFile>(fd, path);
  }

  absl::StatusOr<std::unique_ptr<ReadFileHandle>> OpenForRead(
      const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Failed("opening", path);
    return std::make_unique<PosixReadFile>(fd, path);
  }

  absl::StatusOr<FileInfo> Stat(const std::string& path) override {
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) return Failed("looking at", path);
    return FileInfo{info.st_size, absl::TimeFromTimespec(info.st_mtim)};
  }

  absl::StatusOr<std::vector<std::string>> List(
      const std::string& folder) override {
    return ListFolder(folder);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    return ::rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus()
                                                   : Failed("renaming to", to);
  }

  absl::Status Remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) {
      return absl::OkStatus();
    }
    return Failed("removing", path);
  }

  absl::Status MakeFolders(const std::string& path) override {
    return ::optfarm::MakeFolders(path);
  }

  absl::Status SyncFolder(const std::string& folder) override {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return Failed("opening", folder);
    const int result = ::fsync(fd);
    const absl::Status status =
        result == 0 ? absl::OkStatus() : Failed("syncing", folder);
    ::close(fd);
    return status;
  }

  absl::Status SyncAll(const std::string& folder) override {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return Failed("opening", folder);
    const int result = ::syncfs(fd);
    const absl::Status status =
        result == 0 ? absl::OkStatus() : Failed("syncing all below", folder);
    ::close(fd);
    return status;
  }

  absl::Status Touch(const std::string& path, absl::Time time) override {
    const timespec times[2] = {absl::ToTimespec(time), absl::ToTimespec(time)};
    return ::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0
               ? absl::OkStatus()
               : Failed("stamping", path);
  }

  absl::StatusOr<int64_t> FreeBytes(const std::string& folder) override {
    struct statvfs info;
    if (::statvfs(folder.c_str(), &info) != 0) {
      return Failed("asking for free space in", folder);
    }
    return static_cast<int64_t>(info.f_bavail) *
           static_cast<int64_t>(info.f_frsize);
  }
};

}  // namespace

FileSystem* PosixFileSystem() {
  static PosixFiles* const files = new PosixFiles;
  return files;
}

}  // namespace optfarm::storage
