#include "rpc/blob_cache.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "rpc/blob_transfer.h"

namespace optfarm::rpc {
namespace {

namespace fs = std::filesystem;

// A file's descriptor; closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Bytes of its own for `to`: those of a clone are shared until one is written.
absl::Status CloneOrCopy(const std::string& from, const std::string& to) {
  const std::string what = absl::StrCat("placing '", to, "'");
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.get() < 0) return ErrnoToStatus(errno, what);
  const Descriptor target(
      ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400));
  if (target.get() < 0) return ErrnoToStatus(errno, what);
  if (::ioctl(target.get(), FICLONE, source.get()) == 0) {
    return absl::OkStatus();
  }
  struct stat info;
  if (::fstat(source.get(), &info) != 0) return ErrnoToStatus(errno, what);
  for (off_t done = 0; done < info.st_size;) {
    const ssize_t n = ::sendfile(target.get(), source.get(), &done,
                                 static_cast<size_t>(info.st_size - done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, what);
    if (n == 0) return absl::DataLossError(absl::StrCat(what, ": cut short"));
  }
  return absl::OkStatus();
}

absl::Status Link(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (errno == EXDEV || errno == EPERM || errno == EMLINK) {
    return CloneOrCopy(from, to);
  }
  return ErrnoToStatus(errno, absl::StrCat("placing '", to, "'"));
}

bool HoldsBlob(const v1::Digest& digest, const std::string& path) {
  const absl::StatusOr<uint64_t> size = FileSize(path);
  if (!size.ok() || static_cast<int64_t>(*size) != digest.size_bytes()) {
    return false;
  }
  const absl::StatusOr<std::string> sha256 = Sha256OfFile(path);
  return sha256.ok() && *sha256 == digest.sha256();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlobCache>> BlobCache::Open(
    const std::string& folder, int64_t max_bytes) {
  OPTFARM_RETURN_IF_ERROR(MakeFolders(folder));
  return std::unique_ptr<BlobCache>(new BlobCache(folder, max_bytes));
}

absl::Status BlobCache::Place(const v1::Digest& digest, const std::string& path,
                              Placing placing, const FetchBlob& fetch) {
  OPTFARM_RETURN_IF_ERROR(CheckDigest(digest));
  {
    absl::MutexLock lock(&mutex_);
    const auto is_free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !claimed_.contains(digest.sha256());
    };
    mutex_.Await(absl::Condition(&is_free));
    claimed_.insert(digest.sha256());
  }
  const std::string cached = JoinPath(folder_, digest.sha256());
  absl::Status status = Ensure(digest, cached, fetch);
  if (status.ok()) {
    status = placing == Placing::kLink ? Link(cached, path)
                                       : CloneOrCopy(cached, path);
  }
  absl::MutexLock lock(&mutex_);
  claimed_.erase(digest.sha256());
  return status;
}

absl::Status BlobCache::Ensure(const v1::Digest& digest,
                               const std::string& cached,
                               const FetchBlob& fetch) {
  if (HoldsBlob(digest, cached)) {
    ::utimensat(AT_FDCWD, cached.c_str(), nullptr, 0);
    return absl::OkStatus();
  }
  OPTFARM_RETURN_IF_ERROR(RemoveAll(cached));
  OPTFARM_RETURN_IF_ERROR(fetch(digest, cached));
  ::chmod(cached.c_str(), 0400);
  Evict(digest.sha256());
  return absl::OkStatus();
}

void BlobCache::Evict(absl::string_view keep) {
  struct Entry {
    fs::file_time_type used;
    int64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code error;
  absl::MutexLock lock(&mutex_);
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    std::error_code ignored;
    const int64_t bytes = static_cast<int64_t>(entry.file_size(ignored));
    if (ignored) continue;
    total += bytes;
    const std::string stem = entry.path().stem().string();
    if (stem == keep || claimed_.contains(stem)) continue;
    entries.push_back({entry.last_write_time(ignored), bytes, entry.path()});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_) return;
    if (fs::remove(entry.path, error)) total -= entry.bytes;
  }
}

}  // namespace optfarm::rpc
