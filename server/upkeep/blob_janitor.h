// Makes room for uploads by evicting what no live job needs, and forgets
// uploads that were never finished.

#ifndef OPTFARM_SERVER_UPKEEP_BLOB_JANITOR_H_
#define OPTFARM_SERVER_UPKEEP_BLOB_JANITOR_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
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

  // Housekeeping; call every now and then.
  void CleanUp(absl::Time now);

 private:
  storage::BlobStore& blobs_;
  storage::MetadataStore& store_;
  const bool may_evict_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_BLOB_JANITOR_H_
