#include "storage/file_blob_store.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/blob_file.h"

namespace optfarm::storage {
namespace {

// A blob's file is stamped again only when its stamp is older than this.
constexpr absl::Duration kTouchGrain = absl::Minutes(10);

// The staged bytes of one blob. All uploads of the blob share it; the newest
// owns it. A lock of its own, so that one upload's disk does not stop others.
// Lock order: Staging::mutex before FileBlobStore::mutex_.
struct Staging {
  explicit Staging(BlobId blob) : id(std::move(blob)) {}

  const BlobId id;
  // UNITS: bytes staged. Written with `mutex` held, read without.
  std::atomic<int64_t> size = 0;
  // Uploads that share this; guarded by the store's mutex_.
  int users = 0;

  absl::Mutex mutex;
  // Number of the upload that may write; grows with each take-over.
  int64_t owner ABSL_GUARDED_BY(mutex) = 0;
  std::unique_ptr<AppendFile> file ABSL_GUARDED_BY(mutex);
};

class FileBlobStore final : public BlobStore {
 public:
  explicit FileBlobStore(FileBlobStoreOptions options)
      : options_(std::move(options)), files_(*options_.files) {}

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

  // Called by uploads.
  absl::Status Append(Staging& staging, int64_t owner, int64_t offset,
                      absl::string_view bytes);
  absl::Status Finish(Staging& staging, int64_t owner, absl::Time now);
  void Close(Staging& staging, int64_t owner);

 private:
  struct Entry {
    int64_t size_bytes = 0;
    absl::Time last_used;
    absl::Time stamped;
  };

  std::string FolderOf(absl::string_view sha256) const {
    return BlobFolder(options_.root, sha256);
  }
  std::string PathOf(absl::string_view sha256) const {
    return JoinPath(FolderOf(sha256), sha256);
  }
  std::string StagingFolder() const {
    return JoinPath(options_.root, "staging");
  }
  // The size is in the name: bytes staged under a wrong size are not mixed up
  // with those staged under the right one.
  std::string StagedPath(const BlobId& id) const {
    return JoinPath(StagingFolder(),
                    absl::StrCat(id.sha256, "-", id.size_bytes,
                                 id.uploader.empty() ? "" : "-", id.uploader));
  }
  absl::Status LoadFolder(const std::string& folder);
  absl::Status CheckSize(const BlobId& id) const;
  absl::Status CheckRoom(const BlobId& id, int64_t staged)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Publish(const BlobId& id, absl::Time now);
  absl::Status RemoveFile(const std::string& sha256)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropStaged(Staging& staging)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(staging.mutex);
  absl::StatusOr<int64_t> StagedOnDisk();
  absl::StatusOr<std::shared_ptr<Staging>> JoinStaging(const BlobId& id);
  void LeaveStaging(const Staging& staging);

  const FileBlobStoreOptions options_;
  FileSystem& files_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> index_ ABSL_GUARDED_BY(mutex_);
  int64_t index_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Uploads under way, by staged path.
  absl::flat_hash_map<std::string, std::shared_ptr<Staging>> staging_
      ABSL_GUARDED_BY(mutex_);
};

class FileBlobUpload final : public BlobUpload {
 public:
  FileBlobUpload(FileBlobStore& store, std::shared_ptr<Staging> staging,
                 int64_t owner)
      : store_(store), staging_(std::move(staging)), owner_(owner) {}
  ~FileBlobUpload() override { store_.Close(*staging_, owner_); }

  int64_t staged_bytes() const override { return staging_->size; }
  absl::Status Append(int64_t offset, absl::string_view bytes) override {
    return store_.Append(*staging_, owner_, offset, bytes);
  }
  absl::Status Finish(absl::Time now) override {
    return store_.Finish(*staging_, owner_, now);
  }

 private:
  FileBlobStore& store_;
  const std::shared_ptr<Staging> staging_;
  const int64_t owner_;
};

absl::Status FileBlobStore::Load() {
  OPTFARM_RETURN_IF_ERROR(files_.MakeFolders(StagingFolder()));
  // A server that was killed, or whose sync failed, left names that are seen
  // and not durable; uploads would be told that these blobs are here.
  OPTFARM_RETURN_IF_ERROR(files_.SyncAll(options_.root));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> outer,
                           files_.List(options_.root));
  for (const std::string& first : outer) {
    if (first.size() != 2) continue;
    const std::string folder = JoinPath(options_.root, first);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> inner,
                             files_.List(folder));
    for (const std::string& second : inner) {
      OPTFARM_RETURN_IF_ERROR(LoadFolder(JoinPath(folder, second)));
    }
  }
  return absl::OkStatus();
}

absl::Status FileBlobStore::LoadFolder(const std::string& folder) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           files_.List(folder));
  absl::MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    if (!IsSha256Hex(name)) continue;
    OPTFARM_ASSIGN_OR_RETURN(const FileInfo info,
                             files_.Stat(JoinPath(folder, name)));
    index_[name] = Entry{info.size_bytes, info.modified, info.modified};
    index_bytes_ += info.size_bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> FileBlobStore::Contains(const BlobId& id, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const auto found = index_.find(id.sha256);
  if (found == index_.end()) return false;
  Entry& entry = found->second;
  if (entry.size_bytes != id.size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("blob ", id.sha256, " has ", entry.size_bytes,
                     " bytes, not ", id.size_bytes, ": correct the size"));
  }
  entry.last_used = std::max(entry.last_used, now);
  if (now - entry.stamped > kTouchGrain &&
      files_.Touch(PathOf(id.sha256), now).ok()) {
    entry.stamped = now;
  }
  return true;
}

absl::StatusOr<int64_t> FileBlobStore::CommittedBytes(const BlobId& id) {
  OPTFARM_RETURN_IF_ERROR(CheckSize(id));
  if (id.uploader.empty()) {
    absl::MutexLock lock(&mutex_);
    const auto found = index_.find(id.sha256);
    if (found != index_.end() && found->second.size_bytes == id.size_bytes) {
      return id.size_bytes;
    }
  }
  const absl::StatusOr<FileInfo> staged = files_.Stat(StagedPath(id));
  if (absl::IsNotFound(staged.status())) return 0;
  if (!staged.ok()) return staged.status();
  return std::min(staged->size_bytes, id.size_bytes);
}

absl::Status FileBlobStore::CheckSize(const BlobId& id) const {
  if (id.size_bytes <= options_.max_blob_bytes) return absl::OkStatus();
  // Unlike a full disk, this does not pass.
  return absl::OutOfRangeError(absl::StrCat(
      "blob ", id.sha256, " has ", id.size_bytes, " bytes; this server takes ",
      options_.max_blob_bytes,
      " at most: make it smaller or start the server with a higher "
      "--max_blob_bytes"));
}

absl::StatusOr<int64_t> FileBlobStore::StagedOnDisk() {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           files_.List(StagingFolder()));
  int64_t total = 0;
  for (const std::string& name : names) {
    const absl::StatusOr<FileInfo> info =
        files_.Stat(JoinPath(StagingFolder(), name));
    if (info.ok()) total += info->size_bytes;
  }
  return total;
}

// Counts what other uploads under way have still to write, so that two large
// ones cannot both be let in and then both fail.
absl::Status FileBlobStore::CheckRoom(const BlobId& id, int64_t staged) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t staged_total, StagedOnDisk());
  int64_t promised = 0;
  for (const auto& [path, other] : staging_) {
    if (path == StagedPath(id)) continue;
    promised += std::max<int64_t>(0, other->id.size_bytes - other->size);
  }
  const int64_t needed = id.size_bytes - staged;
  if (index_bytes_ + staged_total + promised >
      options_.max_total_bytes - needed) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "uploading ", id.size_bytes, " bytes: the blob store holds ",
        index_bytes_ + staged_total, " of ", options_.max_total_bytes,
        " bytes allowed; wait until jobs end, or start the server with a "
        "higher --max_store_bytes"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t free_bytes,
                           files_.FreeBytes(options_.root));
  if (free_bytes - promised - options_.reserved_free_bytes < needed) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "uploading ", id.size_bytes, " bytes: the server's disk has ",
        free_bytes, " bytes free, of which ", options_.reserved_free_bytes,
        " are kept for the database; free space on the server and try again"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Staging>> FileBlobStore::JoinStaging(
    const BlobId& id) {
  const std::string path = StagedPath(id);
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Staging>& staging = staging_[path];
  if (staging == nullptr) {
    const absl::StatusOr<FileInfo> info = files_.Stat(path);
    const int64_t staged = info.ok() ? info->size_bytes : 0;
    if (absl::Status status = CheckRoom(id, staged); !status.ok()) {
      staging_.erase(path);
      return status;
    }
    staging = std::make_shared<Staging>(id);
    staging->size = staged;
  }
  ++staging->users;
  return staging;
}

void FileBlobStore::LeaveStaging(const Staging& staging) {
  absl::MutexLock lock(&mutex_);
  const auto found = staging_.find(StagedPath(staging.id));
  if (--found->second->users == 0) staging_.erase(found);
}

absl::StatusOr<std::unique_ptr<BlobUpload>> FileBlobStore::OpenUpload(
    const BlobId& id) {
  OPTFARM_RETURN_IF_ERROR(CheckSize(id));
  OPTFARM_ASSIGN_OR_RETURN(std::shared_ptr<Staging> staging, JoinStaging(id));
  absl::StatusOr<std::unique_ptr<AppendFile>> file;
  {
    absl::MutexLock lock(&staging->mutex);
    if (staging->file != nullptr) {
      return std::make_unique<FileBlobUpload>(*this, staging, ++staging->owner);
    }
    file = files_.OpenForAppend(StagedPath(id));
    absl::StatusOr<FileInfo> info = files_.Stat(StagedPath(id));
    if (file.ok() && info.ok()) {
      staging->file = *std::move(file);
      staging->size = info->size_bytes;
      return std::make_unique<FileBlobUpload>(*this, staging, ++staging->owner);
    }
    if (file.ok()) file = info.status();
  }
  LeaveStaging(*staging);
  return file.status();
}

absl::Status FileBlobStore::Append(Staging& staging, int64_t owner,
                                   int64_t offset, absl::string_view bytes) {
  absl::MutexLock lock(&staging.mutex);
  const BlobId& id = staging.id;
  if (staging.owner != owner || staging.file == nullptr) {
    return absl::AbortedError(
        absl::StrCat("uploading blob ", id.sha256,
                     ": another upload of the same blob took over"));
  }
  const int64_t length = static_cast<int64_t>(bytes.size());
  if (offset < 0 || offset > staging.size || length > id.size_bytes - offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        "uploading blob ", id.sha256, " of ", id.size_bytes, " bytes: got ",
        length, " bytes for offset ", offset, " when ", staging.size.load(),
        " are there; go on from the committed offset that QueryUpload says"));
  }
  const int64_t known = std::min(length, staging.size - offset);
  bytes.remove_prefix(static_cast<size_t>(known));
  if (bytes.empty()) return absl::OkStatus();
  const absl::Status status = staging.file->Append(bytes);
  if (status.ok()) {
    staging.size += static_cast<int64_t>(bytes.size());
    return status;
  }
  DropStaged(staging);
  return Annotate(status,
                  absl::StrCat("uploading blob ", id.sha256,
                               " (free space on the server, then upload it "
                               "again from the beginning)"));
}

void FileBlobStore::DropStaged(Staging& staging) {
  staging.file.reset();
  staging.size = 0;
  // Uploads that still hold it must open anew.
  ++staging.owner;
  if (const absl::Status status = files_.Remove(StagedPath(staging.id));
      !status.ok()) {
    LogWarning("giving up an upload: ", status.message());
  }
}

absl::Status FileBlobStore::Finish(Staging& staging, int64_t owner,
                                   absl::Time now) {
  const BlobId& id = staging.id;
  absl::MutexLock lock(&staging.mutex);
  if (staging.owner != owner || staging.file == nullptr) {
    return absl::AbortedError(
        absl::StrCat("finishing the upload of blob ", id.sha256,
                     ": another upload of the same blob took over"));
  }
  if (staging.size < id.size_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "finishing the upload of blob ", id.sha256, ": ", staging.size.load(),
        " of ", id.size_bytes, " bytes have come; send the rest"));
  }
  // After a failed sync the kernel may have dropped pages: nothing staged can
  // be trusted any more.
  if (const absl::Status status = staging.file->Sync(); !status.ok()) {
    DropStaged(staging);
    return status;
  }
  const absl::StatusOr<std::string> hash =
      HashBlobFile(files_, StagedPath(id), staging.size);
  if (!hash.ok() || *hash != id.sha256 || staging.size != id.size_bytes) {
    DropStaged(staging);
    if (!hash.ok()) return hash.status();
    return absl::DataLossError(absl::StrCat(
        "upload refused: ", id.size_bytes, " bytes came with SHA-256 ", *hash,
        " and not the promised ", id.sha256,
        "; check that the file does not change, and upload it again"));
  }
  if (const absl::Status status = Publish(id, now); !status.ok()) {
    DropStaged(staging);
    return status;
  }
  staging.file.reset();
  staging.size = 0;
  ++staging.owner;
  return absl::OkStatus();
}

// The lock is held throughout, so that an eviction of the same name cannot come
// between the rename and the index.
absl::Status FileBlobStore::Publish(const BlobId& id, absl::Time now) {
  const std::string folder = FolderOf(id.sha256);
  absl::MutexLock lock(&mutex_);
  OPTFARM_RETURN_IF_ERROR(files_.MakeFolders(folder));
  OPTFARM_RETURN_IF_ERROR(files_.Touch(StagedPath(id), now));
  OPTFARM_RETURN_IF_ERROR(files_.Rename(StagedPath(id), PathOf(id.sha256)));
  OPTFARM_RETURN_IF_ERROR(files_.SyncFolder(folder));
  OPTFARM_RETURN_IF_ERROR(
      files_.SyncFolder(JoinPath(options_.root, id.sha256.substr(0, 2))));
  OPTFARM_RETURN_IF_ERROR(files_.SyncFolder(options_.root));
  const auto [entry, added] = index_.try_emplace(id.sha256);
  if (added) index_bytes_ += id.size_bytes;
  entry->second = Entry{id.size_bytes, now, now};
  return absl::OkStatus();
}

void FileBlobStore::Close(Staging& staging, int64_t owner) {
  {
    absl::MutexLock lock(&staging.mutex);
    if (staging.file != nullptr && staging.owner == owner) {
      if (staging.file->Sync().ok()) {
        staging.file.reset();
      } else {
        DropStaged(staging);
      }
    }
  }
  LeaveStaging(staging);
}

absl::StatusOr<std::unique_ptr<BlobReader>> FileBlobStore::OpenBlob(
    absl::string_view sha256) {
  BlobId id{std::string(sha256), 0};
  {
    absl::MutexLock lock(&mutex_);
    const auto found = index_.find(sha256);
    if (found == index_.end()) {
      return NoSuchBlob(sha256);
    }
    id.size_bytes = found->second.size_bytes;
  }
  return OpenBlobFile(files_, PathOf(sha256), id);
}

// REQUIRES: it is in the index.
absl::Status FileBlobStore::RemoveFile(const std::string& sha256) {
  OPTFARM_RETURN_IF_ERROR(files_.Remove(PathOf(sha256)));
  const auto found = index_.find(sha256);
  index_bytes_ -= found->second.size_bytes;
  index_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<Eviction> FileBlobStore::Evict(
    const absl::flat_hash_set<std::string>& keep, absl::Time unused_since,
    int64_t wanted_bytes) {
  absl::MutexLock lock(&mutex_);
  std::vector<std::pair<absl::Time, std::string>> candidates;
  for (const auto& [sha256, entry] : index_) {
    if (entry.last_used < unused_since && !keep.contains(sha256)) {
      candidates.emplace_back(entry.last_used, sha256);
    }
  }
  std::sort(candidates.begin(), candidates.end());
  Eviction evicted;
  for (const auto& [last_used, sha256] : candidates) {
    if (evicted.bytes >= wanted_bytes) break;
    const int64_t size = index_.at(sha256).size_bytes;
    const absl::Status removed = RemoveFile(sha256);
    // What was freed before counts.
    if (!removed.ok() && evicted.blobs.empty()) return removed;
    if (!removed.ok()) break;
    evicted.bytes += size;
    evicted.blobs.push_back(sha256);
  }
  return evicted;
}

absl::StatusOr<std::vector<std::string>> FileBlobStore::Remove(
    absl::Span<const std::string> sha256, absl::Time unused_since) {
  std::vector<std::string> gone;
  for (const std::string& name : sha256) {
    // Held for one file at a time: others wait for it.
    absl::MutexLock lock(&mutex_);
    const auto found = index_.find(name);
    if (found != index_.end()) {
      if (found->second.last_used >= unused_since) continue;
      OPTFARM_RETURN_IF_ERROR(RemoveFile(name));
    }
    gone.push_back(name);
  }
  return gone;
}

absl::Status FileBlobStore::ForgetUploads(absl::Time before) {
  absl::MutexLock lock(&mutex_);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           files_.List(StagingFolder()));
  for (const std::string& name : names) {
    const std::string path = JoinPath(StagingFolder(), name);
    if (staging_.contains(path)) continue;
    const absl::StatusOr<FileInfo> info = files_.Stat(path);
    if (!info.ok() || info->modified >= before) continue;
    OPTFARM_RETURN_IF_ERROR(files_.Remove(path));
  }
  return absl::OkStatus();
}

BlobUsage FileBlobStore::Usage() {
  absl::MutexLock lock(&mutex_);
  return BlobUsage{static_cast<int64_t>(index_.size()), index_bytes_,
                   StagedOnDisk().value_or(0)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlobStore>> OpenFileBlobStore(
    const FileBlobStoreOptions& options) {
  auto store = std::make_unique<FileBlobStore>(options);
  if (absl::Status status = store->Load(); !status.ok()) {
    return Annotate(status,
                    absl::StrCat("opening the blobs in '", options.root, "'"));
  }
  return store;
}

}  // namespace optfarm::storage
