// Makes room for uploads by evicting what no live job needs, deletes what was
// removed from all projects, and forgets uploads that were never finished.

#ifndef OPTFARM_SERVER_UPKEEP_BLOB_JANITOR_H_
#define OPTFARM_SERVER_UPKEEP_BLOB_JANITOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "storage/blob_store.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// THREADS: safe.
class BlobJanitor {
 public:
  // OWNERSHIP: the stores outlive the janitor. `may_evict`: the store is a
  // bounded cache, and blobs unused for an hour may go when it is full.
  BlobJanitor(storage::BlobStore& blobs, storage::MetadataStore& store,
              bool may_evict)
      : blobs_(blobs), store_(store), may_evict_(may_evict) {}

  // BlobStore::OpenUpload, tried again after an eviction when there is no room.
  absl::StatusOr<std::unique_ptr<storage::BlobUpload>> OpenUpload(
      const storage::BlobId& id, absl::Time now);

  // What made room since the janitor was made.
  struct Evictions {
    // UNITS: bytes.
    int64_t bytes = 0;
    int64_t rounds = 0;
    // absl::InfinitePast(): never.
    absl::Time last = absl::InfinitePast();
  };
  Evictions evictions() const;
  bool may_evict() const { return may_evict_; }

  // Housekeeping, a bounded part of it; call every now and then, from one
  // thread. Returns whether there is more to do.
  bool CleanUp(absl::Time now);

  // Deletes the bytes of blobs that were removed from all projects, of those
  // that nobody has used within an hour; CleanUp deletes the others later.
  // Returns how many were deleted. UNITS: bytes.
  int64_t DropOrphans(absl::Span<const storage::BlobId> orphans,
                      absl::Time now);

 private:
  // What has been evicted counts for no project any more.
  void GiveBack(absl::Span<const std::string> evicted);
  bool DropRemoved(absl::Time now);

  storage::BlobStore& blobs_;
  storage::MetadataStore& store_;
  const bool may_evict_;
  // The last removed blob that CleanUp has looked at; empty: it begins anew.
  std::string looked_at_;
  mutable absl::Mutex mutex_;
  Evictions evictions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_BLOB_JANITOR_H_
