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
  int Release() { return std::exchange(fd_, -1); }

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

absl::StatusOr<SequentialFile> SequentialFile::Open(const std::string& path) {
  const std::string what = absl::StrCat("reading '", path, "'");
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoToStatus(errno, what);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, what);
  if (S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": it is a folder, a file was expected"));
  }
  return SequentialFile(path, fd.Release(),
                        static_cast<uint64_t>(info.st_size));
}

SequentialFile::SequentialFile(std::string path, int fd, uint64_t size)
    : path_(std::move(path)), fd_(fd), size_(size) {}

SequentialFile::SequentialFile(SequentialFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_) {}

SequentialFile& SequentialFile::operator=(SequentialFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

SequentialFile::~SequentialFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<size_t> SequentialFile::Read(char* buffer, size_t size) {
  size_t filled = 0;
  while (filled < size) {
    const ssize_t n = ::read(fd_, buffer + filled, size - filled);
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoToStatus(errno, absl::StrCat("reading '", path_, "'"));
    }
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  return filled;
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     uint64_t max_bytes) {
  OPTFARM_ASSIGN_OR_RETURN(SequentialFile file, SequentialFile::Open(path));
  if (file.size() > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("reading '", path, "': it has ", file.size(),
                     " bytes, the limit is ", max_bytes));
  }
  std::string bytes;
  bytes.reserve(static_cast<size_t>(file.size()) + 1);
  size_t filled = 0;
  while (true) {
    // Pipes and /proc files state size 0, so the end is found by reading.
    const size_t stated = static_cast<size_t>(file.size());
    const size_t step =
        std::max<size_t>(4096, stated + 1 - std::min(filled, stated));
    bytes.resize(filled + step);
    OPTFARM_ASSIGN_OR_RETURN(const size_t n,
                             file.Read(bytes.data() + filled, step));
    filled += n;
    if (filled > max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "reading '", path, "': larger than the limit of ", max_bytes));
    }
    if (n < step) break;
  }
  bytes.resize(filled);
  return bytes;
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  std::string temporary = absl::StrCat(path, ".tmp", ::getpid());
  const int fd =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    return ErrnoToStatus(errno, absl::StrCat("creating '", path, "'"));
  }
  return AtomicFile(path, std::move(temporary), fd);
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  return *this;
}

AtomicFile::~AtomicFile() { Discard(); }

void AtomicFile::Discard() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(std::exchange(temporary_, "").c_str());
}

absl::Status AtomicFile::Append(absl::string_view bytes) {
  return WriteAll(fd_, bytes, path_);
}

absl::Status AtomicFile::Commit() {
  if (::fsync(fd_) != 0 || ::close(std::exchange(fd_, -1)) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("syncing '", path_, "'"));
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("renaming to '", path_, "'"));
  }
  temporary_.clear();
  return SyncFolderOf(path_);
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view bytes) {
  OPTFARM_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  OPTFARM_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
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
    return ErrnoToStatus(error.value(), absl::StrCat("reading '", path, "'"));
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
