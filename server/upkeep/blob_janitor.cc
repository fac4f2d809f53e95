#include "server/upkeep/blob_janitor.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::server {
namespace {

// Time between a client's FindMissing, or an agent's upload, and the job or the
// completion that makes the blob needed.
constexpr absl::Duration kGrace = absl::Hours(1);
constexpr absl::Duration kForgetUploadsAfter = absl::Hours(24);
// Blobs that are given back, or looked at, in one go.
constexpr size_t kTogether = 200;

}  // namespace

absl::StatusOr<std::unique_ptr<storage::BlobUpload>> BlobJanitor::OpenUpload(
    const storage::BlobId& id, absl::Time now) {
  auto upload = blobs_.OpenUpload(id);
  if (!absl::IsResourceExhausted(upload.status()) || !may_evict_) return upload;
  OPTFARM_ASSIGN_OR_RETURN(const auto live, store_.LiveBlobs());
  OPTFARM_ASSIGN_OR_RETURN(const storage::Eviction evicted,
                           blobs_.Evict(live, now - kGrace, id.size_bytes));
  if (evicted.blobs.empty()) return upload;
  LogInfo("evicted ", evicted.bytes, " bytes of unused blobs");
  GiveBack(evicted.blobs);
  {
    absl::MutexLock lock(&mutex_);
    evictions_.bytes += evicted.bytes;
    ++evictions_.rounds;
    evictions_.last = now;
  }
  return blobs_.OpenUpload(id);
}

BlobJanitor::Evictions BlobJanitor::evictions() const {
  absl::MutexLock lock(&mutex_);
  return evictions_;
}

void BlobJanitor::GiveBack(absl::Span<const std::string> evicted) {
  for (size_t begin = 0; begin < evicted.size(); begin += kTogether) {
    const absl::Status status =
        store_.GiveBackBlobs(evicted.subspan(begin, kTogether));
    if (status.ok()) continue;
    LogWarning("evicted blobs go on counting for their projects: ",
               status.message());
    return;
  }
}

int64_t BlobJanitor::DropOrphans(absl::Span<const storage::BlobId> orphans,
                                 absl::Time now) {
  absl::flat_hash_map<std::string, int64_t> sizes;
  std::vector<std::string> names;
  for (const storage::BlobId& id : orphans) {
    if (sizes.try_emplace(id.sha256, id.size_bytes).second) {
      names.push_back(id.sha256);
    }
  }
  if (names.empty()) return 0;
  // Whoever was told within that time that a blob is here counts on it.
  const auto gone = blobs_.Remove(names, now - kGrace);
  absl::Status status = gone.status();
  if (status.ok() && !gone->empty()) status = store_.ForgetRemovedBlobs(*gone);
  if (!status.ok()) {
    LogWarning("deleting removed blobs, tried again later: ", status.message());
  }
  int64_t freed = 0;
  if (gone.ok()) {
    for (const std::string& name : *gone) freed += sizes[name];
  }
  return freed;
}

// One step through all that were removed.
bool BlobJanitor::DropRemoved(absl::Time now) {
  const auto removed =
      store_.ListRemovedBlobs(looked_at_, static_cast<int>(kTogether));
  if (!removed.ok()) {
    LogWarning("deleting removed blobs: ", removed.status().message());
    return false;
  }
  std::vector<storage::BlobId> orphans;
  std::vector<std::string> owned;
  for (const storage::RemovedBlob& blob : *removed) {
    if (blob.has_owner) {
      owned.push_back(blob.sha256);
    } else {
      orphans.push_back({blob.sha256, 0});
    }
  }
  DropOrphans(orphans, now);
  if (!owned.empty()) {
    // It was brought, or made, again.
    const absl::Status status = store_.ForgetRemovedBlobs(owned);
    if (!status.ok()) LogWarning("keeping blobs: ", status.message());
  }
  const bool more = removed->size() == kTogether;
  looked_at_ = more ? removed->back().sha256 : "";
  return more;
}

bool BlobJanitor::CleanUp(absl::Time now) {
  const absl::Status status = blobs_.ForgetUploads(now - kForgetUploadsAfter);
  if (!status.ok()) LogWarning("forgetting old uploads: ", status.message());
  return DropRemoved(now);
}

}  // namespace optfarm::server
