// A bounded folder of blobs by digest, so that a participant fetches the same
// model or dataset once.

#ifndef OPTFARM_RPC_BLOB_CACHE_H_
#define OPTFARM_RPC_BLOB_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "optfarm/v1/blobs.pb.h"

namespace optfarm::rpc {

// Puts a blob's bytes at `path`, checked against the digest; the real one is
// DownloadBlob. It may leave "`path`.part" behind, to go on from there.
using FetchBlob = std::function<absl::Status(const v1::Digest& digest,
                                             const std::string& path)>;

// How a blob gets to where it is placed.
enum class Placing {
  // A link to the cached file: for who makes the folder read-only for a task.
  kLink,
  // Bytes of its own, which share their disk space where the file system can.
  kCopy,
};

// THREADS: safe; two fetches of one blob download it once.
class BlobCache {
 public:
  // Opens or makes the cache. Blobs that are in `folder` stay there.
  // UNITS: max_bytes in bytes; blobs unused for longest go first.
  static absl::StatusOr<std::unique_ptr<BlobCache>> Open(
      const std::string& folder, int64_t max_bytes);

  // Places the blob, read-only, at `path`, whose folder exists. The bytes are
  // checked even when they are cached already.
  // ERRORS: InvalidArgument for a malformed digest; those of `fetch`; those
  // of writing.
  absl::Status Place(const v1::Digest& digest, const std::string& path,
                     Placing placing, const FetchBlob& fetch);

 private:
  BlobCache(std::string folder, int64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  // REQUIRES: the caller has claimed the digest.
  absl::Status Ensure(const v1::Digest& digest, const std::string& cached,
                      const FetchBlob& fetch);
  // Removes blobs until all fit, `keep` excepted.
  void Evict(absl::string_view keep);

  const std::string folder_;
  const int64_t max_bytes_;
  absl::Mutex mutex_;
  absl::flat_hash_set<std::string> claimed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_BLOB_CACHE_H_
