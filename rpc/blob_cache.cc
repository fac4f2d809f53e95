#include "rpc/blob_cache.h"

#include <fcntl.h>
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

// A hard link; a copy where the file systems differ.
absl::Status LinkOrCopy(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  const std::string what = absl::StrCat("placing '", to, "'");
  if (errno != EXDEV && errno != EPERM && errno != EMLINK) {
    return ErrnoToStatus(errno, what);
  }
  std::error_code error;
  fs::copy_file(from, to, error);
  return error ? ErrnoToStatus(error.value(), what) : absl::OkStatus();
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
                              const FetchBlob& fetch) {
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
  if (status.ok()) status = LinkOrCopy(cached, path);
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
