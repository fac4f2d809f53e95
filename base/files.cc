#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm {
namespace {

namespace fs = std::filesystem;

// Closes a descriptor when it goes out of scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

absl::Status WriteAll(int fd, absl::string_view bytes,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoToStatus(errno, absl::StrCat("writing '", path, "'"));
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status SyncFolderOf(const std::string& path) {
  std::string folder = fs::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("syncing folder '", folder, "'"));
  }
  return absl::OkStatus();
}

absl::Status WriteAndRename(const std::string& temporary,
                            const std::string& path, absl::string_view bytes) {
  Descriptor fd(::open(temporary.c_str(),
                       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (fd.get() < 0) {
    return ErrnoToStatus(errno, absl::StrCat("creating '", path, "'"));
  }
  OPTFARM_RETURN_IF_ERROR(WriteAll(fd.get(), bytes, path));
  if (::fsync(fd.get()) != 0 || fd.Close() != 0) {
    return ErrnoToStatus(errno, absl::StrCat("syncing '", path, "'"));
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("renaming to '", path, "'"));
  }
  return SyncFolderOf(path);
}

}  // namespace

absl::Status ErrnoToStatus(int error, absl::string_view what) {
  const std::string text = absl::StrCat(what, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(
          absl::StrCat(text, "; free some space or choose another folder"));
    case EEXIST:
      return absl::AlreadyExistsError(text);
    default:
      return absl::UnavailableError(text);
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     uint64_t max_bytes) {
  const std::string what = absl::StrCat("reading '", path, "'");
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoToStatus(errno, what);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, what);
  if (S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": it is a folder, a file was expected"));
  }
  if (static_cast<uint64_t>(info.st_size) > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        what, ": it has ", info.st_size, " bytes, the limit is ", max_bytes));
  }
  std::string bytes;
  bytes.reserve(static_cast<size_t>(info.st_size) + 1);
  size_t filled = 0;
  while (true) {
    // Pipes and /proc files state size 0, so the end is found by reading.
    const size_t step = std::max<size_t>(
        4096, static_cast<size_t>(info.st_size) + 1 -
                  std::min(filled, static_cast<size_t>(info.st_size)));
    bytes.resize(filled + step);
    const ssize_t n = ::read(fd.get(), bytes.data() + filled, step);
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoToStatus(errno, what);
    }
    filled += static_cast<size_t>(n);
    if (n == 0) break;
    if (filled > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(what, ": larger than the limit of ", max_bytes));
    }
  }
  bytes.resize(filled);
  return bytes;
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view bytes) {
  const std::string temporary = absl::StrCat(path, ".tmp", ::getpid());
  absl::Status status = WriteAndRename(temporary, path, bytes);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

absl::Status MakeFolders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    return ErrnoToStatus(error.value(),
                         absl::StrCat("making folder '", path, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeTemporaryFolder(absl::string_view prefix,
                                                const std::string& parent) {
  std::error_code error;
  const std::string base =
      parent.empty() ? fs::temp_directory_path(error).string() : parent;
  std::string path = JoinPath(base, absl::StrCat(prefix, "XXXXXX"));
  if (::mkdtemp(path.data()) == nullptr) {
    return ErrnoToStatus(errno,
                         absl::StrCat("making a folder in '", base, "'"));
  }
  return path;
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) {
    return ErrnoToStatus(error.value(), absl::StrCat("removing '", path, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator it(path, error);
  if (error) {
    return ErrnoToStatus(error.value(),
                         absl::StrCat("listing folder '", path, "'"));
  }
  for (const fs::directory_iterator end; it != end; it.increment(error)) {
    if (error) {
      return ErrnoToStatus(error.value(),
                           absl::StrCat("listing folder '", path, "'"));
    }
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<uint64_t> FileSize(const std::string& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error) {
    return ErrnoToStatus(error.value(), absl::StrCat("size of '", path, "'"));
  }
  return size;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::string JoinPath(absl::string_view head, absl::string_view tail) {
  if (head.empty() || (!tail.empty() && tail.front() == '/')) {
    return std::string(tail);
  }
  if (head.back() == '/') return absl::StrCat(head, tail);
  return absl::StrCat(head, "/", tail);
}

std::string BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == absl::string_view::npos ? path
                                                      : path.substr(slash + 1));
}

std::string LowerExtension(absl::string_view path) {
  const std::string name = BaseName(path);
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return "";
  return absl::AsciiStrToLower(name.substr(dot + 1));
}

ScopedFolder::~ScopedFolder() {
  if (!path_.empty()) RemoveAll(path_).IgnoreError();
}

}  // namespace optfarm
