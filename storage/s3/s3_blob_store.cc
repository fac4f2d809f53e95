#include "storage/s3/s3_blob_store.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/s3/s3_index.h"
#include "storage/s3/s3_reader.h"
#include "storage/s3/s3_signature.h"
#include "storage/s3/s3_staging.h"
#include "storage/s3/s3_upkeep.h"

namespace optfarm::storage {
namespace {

// A blob's record is stamped again only when its stamp is older than this.
constexpr absl::Duration kTouchGrain = absl::Minutes(10);
// Records that Evict reads at a time.
constexpr int kEvictPage = 200;

// The upload of one blob, shared as in FileBlobStore.
// Lock order: SharedStaging::mutex before S3BlobStore::mutex_.
struct SharedStaging {
  explicit SharedStaging(BlobId blob) : id(std::move(blob)) {}

  const BlobId id;
  // UNITS: bytes staged. Written with `mutex` held, read without.
  std::atomic<int64_t> size = 0;
  // Uploads that share this; guarded by the store's mutex_.
  int users = 0;

  absl::Mutex mutex;
  // Number of the upload that may write; grows with each take-over.
  int64_t owner ABSL_GUARDED_BY(mutex) = 0;
  std::unique_ptr<S3Staging> staging ABSL_GUARDED_BY(mutex);
};

// What is staged stays while the store is away, full or closed to these keys.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsFailedPrecondition(status) ||
         absl::IsResourceExhausted(status);
}

class S3BlobStore final : public BlobStore {
 public:
  explicit S3BlobStore(const S3BlobStoreOptions& options)
      : options_(options), files_(*options.files), client_(options.client) {}

  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<bool> Contains(const BlobId& id, absl::Time now) override;
  absl::StatusOr<int64_t> CommittedBytes(const BlobId& id) override;
  absl::StatusOr<std::unique_ptr<BlobUpload>> OpenUpload(
      const BlobId& id) override;
  absl::StatusOr<std::unique_ptr<BlobReader>> OpenBlob(
      absl::string_view sha256) override;
  absl::StatusOr<Eviction> Evict(const absl::flat_hash_set<std::string>& keep,
                                 absl::Time unused_since,
                                 int64_t wanted_bytes) override;
  absl::StatusOr<std::vector<std::string>> Remove(
      absl::Span<const std::string> sha256, absl::Time unused_since) override;
  absl::Status ForgetUploads(absl::Time before) override;
  BlobUsage Usage() override;
  std::string DownloadUrl(absl::string_view sha256, absl::Time now,
                          absl::Duration valid) override;

  // Called by uploads and readers.
  absl::Status Append(SharedStaging& shared, int64_t owner, int64_t offset,
                      absl::string_view bytes);
  absl::Status Finish(SharedStaging& shared, int64_t owner, absl::Time now);
  void Close(SharedStaging& shared, int64_t owner);
  void CloseReader(const std::string& sha256);

 private:
  // What happens to a key beside its record. A key without one is only read
  // and written as its record says.
  struct KeyState {
    int readers = 0;
    // Uploads that write it.
    int writers = 0;
    // No record, and deleted when the last reader goes.
    bool doomed = false;
    bool being_deleted = false;
  };

  std::string StagingFolder() const {
    return JoinPath(options_.folder, "staging");
  }
  absl::Status CheckSize(const BlobId& id) const;
  absl::Status CheckRoom(const BlobId& id, int64_t staged)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<int64_t> StagedInAll();
  absl::StatusOr<std::shared_ptr<SharedStaging>> JoinStaging(const BlobId& id);
  void LeaveStaging(const SharedStaging& shared);
  absl::Status DropStaged(SharedStaging& shared, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shared.mutex);
  absl::Status Publish(S3Staging& staging, const BlobId& id, absl::Time now);
  absl::StatusOr<std::optional<int64_t>> EvictOne(const S3BlobRecord& blob,
                                                  absl::Time unused_since);
  absl::Status DeleteKey(const std::string& sha256);
  void DropState(const std::string& sha256)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const S3BlobStoreOptions options_;
  FileSystem& files_;
  S3Client client_;
  std::unique_ptr<S3Index> index_;
  std::unique_ptr<S3StagingHome> home_;
  absl::Mutex mutex_;
  int64_t blobs_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t blob_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, KeyState> keys_ ABSL_GUARDED_BY(mutex_);
  // Uploads under way, by staged name.
  absl::flat_hash_map<std::string, std::shared_ptr<SharedStaging>> staging_
      ABSL_GUARDED_BY(mutex_);
};

class S3BlobUpload final : public BlobUpload {
 public:
  S3BlobUpload(S3BlobStore& store, std::shared_ptr<SharedStaging> shared,
               int64_t owner)
      : store_(store), shared_(std::move(shared)), owner_(owner) {}
  ~S3BlobUpload() override { store_.Close(*shared_, owner_); }

  int64_t staged_bytes() const override { return shared_->size; }
  absl::Status Append(int64_t offset, absl::string_view bytes) override {
    return store_.Append(*shared_, owner_, offset, bytes);
  }
  absl::Status Finish(absl::Time now) override {
    return store_.Finish(*shared_, owner_, now);
  }

 private:
  S3BlobStore& store_;
  const std::shared_ptr<SharedStaging> shared_;
  const int64_t owner_;
};

absl::Status S3BlobStore::Load() {
  OPTFARM_RETURN_IF_ERROR(files_.MakeFolders(StagingFolder()));
  OPTFARM_RETURN_IF_ERROR(client_.Check());
  const S3Location& location = options_.client.transport.location;
  OPTFARM_ASSIGN_OR_RETURN(
      index_, S3Index::Open(JoinPath(options_.folder, "index.db"),
                            absl::StrCat(location.endpoint, " s3://",
                                         location.bucket, "/", location.prefix,
                                         options_.term.empty() ? "" : " ",
                                         options_.term)));
  home_ = std::make_unique<S3StagingHome>(S3StagingHome{
      client_, *index_, files_, StagingFolder(), options_.part_bytes});
  OPTFARM_RETURN_IF_ERROR(ListBlobsOnce(client_, *index_));
  OPTFARM_ASSIGN_OR_RETURN(const S3Index::Totals totals, index_->CountBlobs());
  absl::MutexLock lock(&mutex_);
  blobs_ = totals.blobs;
  blob_bytes_ = totals.bytes;
  return absl::OkStatus();
}

absl::StatusOr<bool> S3BlobStore::Contains(const BlobId& id, absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(const auto found, index_->Find(id.sha256));
  if (!found) return false;
  if (found->size_bytes != id.size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("blob ", id.sha256, " has ", found->size_bytes,
                     " bytes, not ", id.size_bytes, ": correct the size"));
  }
  if (now - found->last_used > kTouchGrain) {
    OPTFARM_RETURN_IF_ERROR(index_->Touch(id.sha256, now));
    // An eviction may have been faster.
    OPTFARM_ASSIGN_OR_RETURN(const auto still, index_->Find(id.sha256));
    return still.has_value();
  }
  return true;
}

absl::StatusOr<int64_t> S3BlobStore::CommittedBytes(const BlobId& id) {
  OPTFARM_RETURN_IF_ERROR(CheckSize(id));
  if (id.uploader.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(const auto found, index_->Find(id.sha256));
    if (found && found->size_bytes == id.size_bytes) return id.size_bytes;
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t staged,
                           S3StagedBytes(*home_, S3StagedName(id)));
  return std::min(staged, id.size_bytes);
}

absl::Status S3BlobStore::CheckSize(const BlobId& id) const {
  if (id.size_bytes <= options_.max_blob_bytes) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "blob ", id.sha256, " has ", id.size_bytes, " bytes; this server takes ",
      options_.max_blob_bytes,
      " at most: make it smaller or start the server with a higher "
      "--max_blob_bytes"));
}

absl::StatusOr<int64_t> S3BlobStore::StagedInAll() {
  OPTFARM_ASSIGN_OR_RETURN(int64_t total, index_->PartBytes());
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           files_.List(StagingFolder()));
  for (const std::string& name : names) {
    const absl::StatusOr<FileInfo> info =
        files_.Stat(JoinPath(StagingFolder(), name));
    if (info.ok()) total += info->size_bytes;
  }
  return total;
}

// Counts what other uploads under way promised, so that two large ones cannot
// both be let in and then both fail.
absl::Status S3BlobStore::CheckRoom(const BlobId& id, int64_t staged) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t staged_total, StagedInAll());
  int64_t promised = 0;
  int64_t promised_here = 0;
  for (const auto& [name, other] : staging_) {
    if (name == S3StagedName(id)) continue;
    const int64_t rest =
        std::max<int64_t>(0, other->id.size_bytes - other->size);
    promised += rest;
    promised_here += std::min(rest, options_.part_bytes);
  }
  const int64_t needed = id.size_bytes - staged;
  if (blob_bytes_ + staged_total + promised >
      options_.max_total_bytes - needed) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "uploading ", id.size_bytes, " bytes: the blob store holds ",
        blob_bytes_ + staged_total, " of ", options_.max_total_bytes,
        " bytes allowed; wait until jobs end, or start the server with a "
        "higher --max_store_bytes"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t free_bytes,
                           files_.FreeBytes(options_.folder));
  if (free_bytes - promised_here - options_.reserved_free_bytes <
      std::min(needed, options_.part_bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "uploading ", id.size_bytes, " bytes: the server's disk has ",
        free_bytes, " bytes free, of which ", options_.reserved_free_bytes,
        " are kept for the database; free space on the server and try again"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<SharedStaging>> S3BlobStore::JoinStaging(
    const BlobId& id) {
  const std::string name = S3StagedName(id);
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<SharedStaging>& shared = staging_[name];
  if (shared == nullptr) {
    absl::StatusOr<int64_t> staged = S3StagedBytes(*home_, name);
    absl::Status status = staged.status();
    if (status.ok()) status = CheckRoom(id, *staged);
    if (!status.ok()) {
      staging_.erase(name);
      return status;
    }
    shared = std::make_shared<SharedStaging>(id);
    shared->size = *staged;
  }
  ++shared->users;
  return shared;
}

void S3BlobStore::LeaveStaging(const SharedStaging& shared) {
  absl::MutexLock lock(&mutex_);
  const auto found = staging_.find(S3StagedName(shared.id));
  if (--found->second->users == 0) staging_.erase(found);
}

absl::StatusOr<std::unique_ptr<BlobUpload>> S3BlobStore::OpenUpload(
    const BlobId& id) {
  OPTFARM_RETURN_IF_ERROR(CheckSize(id));
  OPTFARM_ASSIGN_OR_RETURN(std::shared_ptr<SharedStaging> shared,
                           JoinStaging(id));
  absl::StatusOr<std::unique_ptr<S3Staging>> staging;
  {
    absl::MutexLock lock(&shared->mutex);
    if (shared->staging == nullptr) {
      staging = S3Staging::Open(*home_, id);
      if (staging.ok()) shared->staging = *std::move(staging);
    }
    if (shared->staging != nullptr) {
      shared->size = shared->staging->staged_bytes();
      return std::make_unique<S3BlobUpload>(*this, shared, ++shared->owner);
    }
  }
  LeaveStaging(*shared);
  return staging.status();
}

absl::Status S3BlobStore::DropStaged(SharedStaging& shared,
                                     const absl::Status& why) {
  if (const absl::Status status = shared.staging->Drop(); !status.ok()) {
    LogWarning("giving up an upload: ", status.message());
  }
  shared.staging.reset();
  shared.size = 0;
  // Uploads that still hold it must open anew.
  ++shared.owner;
  if (!absl::IsNotFound(why)) return why;
  return absl::AbortedError(absl::StrCat(
      why.message(), "; the store gave the upload up: begin it again"));
}

absl::Status S3BlobStore::Append(SharedStaging& shared, int64_t owner,
                                 int64_t offset, absl::string_view bytes) {
  absl::MutexLock lock(&shared.mutex);
  const BlobId& id = shared.id;
  if (shared.owner != owner || shared.staging == nullptr) {
    return absl::AbortedError(
        absl::StrCat("uploading blob ", id.sha256,
                     ": another upload of the same blob took over"));
  }
  const int64_t staged = shared.staging->staged_bytes();
  const int64_t length = static_cast<int64_t>(bytes.size());
  if (offset < 0 || offset > staged || length > id.size_bytes - offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        "uploading blob ", id.sha256, " of ", id.size_bytes, " bytes: got ",
        length, " bytes for offset ", offset, " when ", staged,
        " are there; go on from the committed offset that QueryUpload says"));
  }
  bytes.remove_prefix(static_cast<size_t>(std::min(length, staged - offset)));
  const absl::Status status = shared.staging->Append(bytes);
  shared.size = shared.staging->staged_bytes();
  if (!shared.staging->trusted()) {
    return DropStaged(
        shared,
        Annotate(status, absl::StrCat("uploading blob ", id.sha256,
                                      " (free space on the server, then upload "
                                      "it again from the beginning)")));
  }
  return status.ok() || MayPass(status) ? status : DropStaged(shared, status);
}

absl::Status S3BlobStore::Finish(SharedStaging& shared, int64_t owner,
                                 absl::Time now) {
  const BlobId& id = shared.id;
  absl::MutexLock lock(&shared.mutex);
  if (shared.owner != owner || shared.staging == nullptr) {
    return absl::AbortedError(
        absl::StrCat("finishing the upload of blob ", id.sha256,
                     ": another upload of the same blob took over"));
  }
  S3Staging& staging = *shared.staging;
  if (staging.staged_bytes() < id.size_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("finishing the upload of blob ", id.sha256, ": ",
                     staging.staged_bytes(), " of ", id.size_bytes,
                     " bytes have come; send the rest"));
  }
  absl::Status status = staging.Check();
  if (status.ok()) {
    status = Publish(staging, id, now);
    if (MayPass(status)) return status;
  }
  if (!status.ok()) return DropStaged(shared, status);
  shared.staging.reset();
  shared.size = 0;
  ++shared.owner;
  return absl::OkStatus();
}

// An eviction of the same key does not come between the write and the record.
absl::Status S3BlobStore::Publish(S3Staging& staging, const BlobId& id,
                                  absl::Time now) {
  {
    absl::MutexLock lock(&mutex_);
    const auto not_being_deleted = [this,
                                    &id]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      const auto state = keys_.find(id.sha256);
      return state == keys_.end() || !state->second.being_deleted;
    };
    mutex_.Await(absl::Condition(&not_being_deleted));
    KeyState& state = keys_[id.sha256];
    ++state.writers;
    state.doomed = false;
  }
  absl::Status status = staging.Publish();
  absl::MutexLock lock(&mutex_);
  if (status.ok()) {
    const auto known = index_->Find(id.sha256);
    status = index_->PutBlobs({{id.sha256, id.size_bytes, now}});
    if (status.ok() && known.ok() && !known->has_value()) {
      ++blobs_;
      blob_bytes_ += id.size_bytes;
    }
  }
  --keys_[id.sha256].writers;
  DropState(id.sha256);
  if (!status.ok()) return status;
  if (const absl::Status left = staging.Forget(); !left.ok()) {
    LogWarning("what was staged of a blob stays for now: ", left.message());
  }
  return absl::OkStatus();
}

void S3BlobStore::Close(SharedStaging& shared, int64_t owner) {
  {
    absl::MutexLock lock(&shared.mutex);
    if (shared.staging != nullptr && shared.owner == owner) {
      if (shared.staging->Sync().ok()) {
        shared.staging.reset();
      } else {
        DropStaged(shared, absl::OkStatus()).IgnoreError();
      }
    }
  }
  LeaveStaging(shared);
}

absl::StatusOr<std::unique_ptr<BlobReader>> S3BlobStore::OpenBlob(
    absl::string_view sha256) {
  absl::MutexLock lock(&mutex_);
  OPTFARM_ASSIGN_OR_RETURN(const auto found, index_->Find(sha256));
  if (!found) return NoSuchBlob(sha256);
  ++keys_[found->sha256].readers;
  return MakeS3Reader(client_, BlobId{found->sha256, found->size_bytes},
                      options_.read_ahead_bytes,
                      [this, name = found->sha256] { CloseReader(name); });
}

std::string S3BlobStore::DownloadUrl(absl::string_view sha256, absl::Time now,
                                     absl::Duration valid) {
  if (options_.download_endpoint.empty()) return "";
  S3Location location = client_.location();
  location.endpoint = options_.download_endpoint;
  return PresignedGet(location, options_.client.transport.credentials,
                      S3BlobKey(sha256), now, valid);
}

void S3BlobStore::CloseReader(const std::string& sha256) {
  {
    absl::MutexLock lock(&mutex_);
    KeyState& state = keys_[sha256];
    --state.readers;
    if (!state.doomed || state.readers > 0) {
      DropState(sha256);
      return;
    }
    state.being_deleted = true;
  }
  const absl::Status status = DeleteKey(sha256);
  if (!status.ok()) {
    LogWarning("an evicted blob stays in the bucket: ", status.message());
  }
}

void S3BlobStore::DropState(const std::string& sha256) {
  const auto found = keys_.find(sha256);
  const KeyState& state = found->second;
  if (state.readers == 0 && state.writers == 0 && !state.doomed &&
      !state.being_deleted) {
    keys_.erase(found);
  }
}

// REQUIRES: its state says that it is being deleted, which ends here.
absl::Status S3BlobStore::DeleteKey(const std::string& sha256) {
  const absl::Status status = client_.Delete(S3BlobKey(sha256));
  absl::MutexLock lock(&mutex_);
  KeyState& state = keys_[sha256];
  state.being_deleted = false;
  state.doomed = false;
  DropState(sha256);
  return status;
}

absl::StatusOr<Eviction> S3BlobStore::Evict(
    const absl::flat_hash_set<std::string>& keep, absl::Time unused_since,
    int64_t wanted_bytes) {
  // Records may be that much behind.
  unused_since -= kTouchGrain;
  Eviction evicted;
  S3BlobRecord after;
  while (evicted.bytes < wanted_bytes) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<S3BlobRecord> page,
                             index_->Unused(unused_since, after, kEvictPage));
    if (page.empty()) break;
    for (const S3BlobRecord& blob : page) {
      if (evicted.bytes >= wanted_bytes) break;
      after = blob;
      if (keep.contains(blob.sha256)) continue;
      const auto bytes = EvictOne(blob, unused_since);
      // What was freed before counts.
      if (!bytes.ok() && evicted.blobs.empty()) return bytes.status();
      if (!bytes.ok()) return evicted;
      if (!bytes->has_value()) continue;
      evicted.bytes += **bytes;
      evicted.blobs.push_back(blob.sha256);
    }
  }
  return evicted;
}

absl::StatusOr<std::vector<std::string>> S3BlobStore::Remove(
    absl::Span<const std::string> sha256, absl::Time unused_since) {
  unused_since -= kTouchGrain;
  std::vector<std::string> gone;
  for (const std::string& name : sha256) {
    OPTFARM_ASSIGN_OR_RETURN(const auto blob, index_->Find(name));
    if (blob.has_value()) {
      OPTFARM_ASSIGN_OR_RETURN(const auto bytes, EvictOne(*blob, unused_since));
      if (!bytes.has_value()) continue;
    }
    gone.push_back(name);
  }
  return gone;
}

// Returns how many bytes were freed; nullopt: the blob is in use again.
absl::StatusOr<std::optional<int64_t>> S3BlobStore::EvictOne(
    const S3BlobRecord& blob, absl::Time unused_since) {
  {
    absl::MutexLock lock(&mutex_);
    KeyState& state = keys_[blob.sha256];
    absl::StatusOr<bool> removed = false;
    if (state.writers == 0 && !state.being_deleted) {
      removed = index_->RemoveBlob(blob.sha256, unused_since);
    }
    if (!removed.ok() || !*removed) {
      DropState(blob.sha256);
      if (!removed.ok()) return removed.status();
      return std::nullopt;
    }
    --blobs_;
    blob_bytes_ -= blob.size_bytes;
    state.doomed = state.readers > 0;
    if (state.doomed) return blob.size_bytes;
    state.being_deleted = true;
  }
  const absl::Status status = DeleteKey(blob.sha256);
  if (status.ok()) return blob.size_bytes;
  // Still there, so it still counts, unless an upload brought it back.
  absl::MutexLock lock(&mutex_);
  OPTFARM_ASSIGN_OR_RETURN(const auto known, index_->Find(blob.sha256));
  if (known) return std::nullopt;
  OPTFARM_RETURN_IF_ERROR(index_->PutBlobs({blob}));
  ++blobs_;
  blob_bytes_ += blob.size_bytes;
  return status;
}

absl::Status S3BlobStore::ForgetUploads(absl::Time before) {
  {
    // No upload begins meanwhile.
    absl::MutexLock lock(&mutex_);
    absl::flat_hash_set<std::string> open;
    for (const auto& [name, shared] : staging_) open.insert(name);
    OPTFARM_RETURN_IF_ERROR(ForgetStaged(*home_, before, open));
  }
  return AbortUnknownUploads(client_, *index_, before);
}

BlobUsage S3BlobStore::Usage() {
  const int64_t staged = StagedInAll().value_or(0);
  absl::MutexLock lock(&mutex_);
  return BlobUsage{blobs_, blob_bytes_, staged};
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlobStore>> OpenS3BlobStore(
    const S3BlobStoreOptions& options) {
  auto store = std::make_unique<S3BlobStore>(options);
  if (absl::Status status = store->Load(); !status.ok()) {
    const S3Location& location = options.client.transport.location;
    return Annotate(
        status, absl::StrCat("opening the blobs in s3://", location.bucket, "/",
                             location.prefix));
  }
  return store;
}

}  // namespace optfarm::storage
