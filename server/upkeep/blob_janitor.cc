#include "server/upkeep/blob_janitor.h"

#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::server {
namespace {

// Time between a client's FindMissing, or an agent's upload, and the job or the
// completion that makes the blob needed.
constexpr absl::Duration kGrace = absl::Hours(1);
constexpr absl::Duration kForgetUploadsAfter = absl::Hours(24);

}  // namespace

absl::StatusOr<std::unique_ptr<storage::BlobUpload>> BlobJanitor::OpenUpload(
    const storage::BlobId& id, absl::Time now) {
  auto upload = blobs_.OpenUpload(id);
  if (!absl::IsResourceExhausted(upload.status()) || !may_evict_) return upload;
  OPTFARM_ASSIGN_OR_RETURN(const auto live, store_.LiveBlobs());
  OPTFARM_ASSIGN_OR_RETURN(const int64_t freed,
                           blobs_.Evict(live, now - kGrace, id.size_bytes));
  if (freed == 0) return upload;
  LogInfo("evicted ", freed, " bytes of unused blobs");
  {
    absl::MutexLock lock(&mutex_);
    evictions_.bytes += freed;
    ++evictions_.rounds;
    evictions_.last = now;
  }
  return blobs_.OpenUpload(id);
}

BlobJanitor::Evictions BlobJanitor::evictions() const {
  absl::MutexLock lock(&mutex_);
  return evictions_;
}

void BlobJanitor::CleanUp(absl::Time now) {
  const absl::Status status = blobs_.ForgetUploads(now - kForgetUploadsAfter);
  if (!status.ok()) LogWarning("forgetting old uploads: ", status.message());
}

}  // namespace optfarm::server
