#include "storage/s3/s3_staging.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

// S3's own bound.
constexpr int64_t kMaxParts = 10'000;
constexpr int64_t kPartGrain = 1 << 20;

// Parts are hashed up to their ends, and a saved hash ends with a block.
static_assert(kPartGrain % ResumableSha256::kBlockBytes == 0);

int64_t PartBytesOf(int64_t size_bytes, int64_t part_bytes) {
  const int64_t least = (size_bytes + kMaxParts - 1) / kMaxParts;
  if (least <= part_bytes) return part_bytes;
  return (least + kPartGrain - 1) / kPartGrain * kPartGrain;
}

std::string TailName(const std::string& name, int64_t number) {
  return absl::StrCat(name, ".", number);
}

// UNITS: bytes; 0 where there is no file.
absl::StatusOr<int64_t> SizeOfFile(FileSystem& files, const std::string& path) {
  const absl::StatusOr<FileInfo> info = files.Stat(path);
  if (absl::IsNotFound(info.status())) return 0;
  if (!info.ok()) return info.status();
  return info->size_bytes;
}

}  // namespace

std::string S3BlobKey(absl::string_view sha256) {
  return absl::StrCat("blobs/", sha256.substr(0, 2), "/", sha256);
}

std::string S3StagedName(const BlobId& id) {
  return absl::StrCat(id.sha256, "-", id.size_bytes,
                      id.uploader.empty() ? "" : "-", id.uploader);
}

absl::StatusOr<int64_t> S3StagedBytes(const S3StagingHome& home,
                                      const std::string& name) {
  OPTFARM_ASSIGN_OR_RETURN(const auto upload, home.index.FindUpload(name));
  const int64_t parts = upload ? static_cast<int64_t>(upload->etags.size()) : 0;
  OPTFARM_ASSIGN_OR_RETURN(
      const int64_t tail,
      SizeOfFile(home.files, JoinPath(home.folder, TailName(name, parts + 1))));
  return tail + (upload ? parts * upload->part_bytes : 0);
}

S3Staging::S3Staging(const S3StagingHome& home, const BlobId& id)
    : home_(home),
      id_(id),
      name_(S3StagedName(id)),
      key_(S3BlobKey(id.sha256)),
      part_bytes_(PartBytesOf(id.size_bytes, home.part_bytes)) {}

std::string S3Staging::TailPath() const {
  return JoinPath(home_.folder, TailName(name_, parts() + 1));
}

absl::StatusOr<std::unique_ptr<S3Staging>> S3Staging::Open(
    const S3StagingHome& home, const BlobId& id) {
  std::unique_ptr<S3Staging> staging(new S3Staging(home, id));
  OPTFARM_ASSIGN_OR_RETURN(staging->upload_,
                           home.index.FindUpload(staging->name_));
  if (staging->upload_) {
    const S3UploadRecord& upload = *staging->upload_;
    staging->part_bytes_ = upload.part_bytes;
    absl::StatusOr<ResumableSha256> hash =
        ResumableSha256::Restore(upload.hash);
    const int64_t in_parts = staging->parts() * upload.part_bytes;
    if (!hash.ok() || hash->bytes() != in_parts || in_parts > id.size_bytes) {
      LogWarning("the index's record of the upload of blob ", id.sha256,
                 " is damaged; it begins again");
      OPTFARM_RETURN_IF_ERROR(staging->Drop());
    } else {
      staging->hash_ = *hash;
      // Left by a process that ended just after it had sent the part.
      OPTFARM_RETURN_IF_ERROR(home.files.Remove(
          JoinPath(home.folder, TailName(staging->name_, staging->parts()))));
    }
  }
  OPTFARM_RETURN_IF_ERROR(staging->OpenTail());
  return staging;
}

absl::Status S3Staging::OpenTail() {
  const std::string path = TailPath();
  OPTFARM_ASSIGN_OR_RETURN(tail_, home_.files.OpenForAppend(path));
  OPTFARM_ASSIGN_OR_RETURN(tail_bytes_, SizeOfFile(home_.files, path));
  const int64_t in_parts = parts() * part_bytes_;
  if (tail_bytes_ > std::min(part_bytes_, id_.size_bytes - in_parts)) {
    // Only a disk that came back otherwise than it went.
    tail_.reset();
    OPTFARM_RETURN_IF_ERROR(home_.files.Remove(path));
    OPTFARM_ASSIGN_OR_RETURN(tail_, home_.files.OpenForAppend(path));
    tail_bytes_ = 0;
  }
  staged_ = in_parts + tail_bytes_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> S3Staging::ReadTail() {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<ReadFileHandle> file,
                           home_.files.OpenForRead(TailPath()));
  OPTFARM_ASSIGN_OR_RETURN(std::string bytes, file->Read(0, tail_bytes_));
  if (static_cast<int64_t>(bytes.size()) == tail_bytes_) return bytes;
  return absl::DataLossError(
      absl::StrCat("reading '", TailPath(), "': ", bytes.size(), " of ",
                   tail_bytes_, " bytes are there; upload the blob again"));
}

absl::Status S3Staging::SendPart(absl::string_view bytes) {
  if (!upload_) {
    OPTFARM_ASSIGN_OR_RETURN(const std::string upload_id,
                             home_.client.BeginUpload(key_));
    S3UploadRecord upload{
        name_, id_.sha256, upload_id, part_bytes_, ResumableSha256().Save(),
        {}};
    OPTFARM_RETURN_IF_ERROR(home_.index.AddUpload(upload));
    upload_ = std::move(upload);
  }
  const int number = parts() + 1;
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string etag,
      home_.client.PutPart(key_, upload_->upload_id, number, bytes));
  upload_->etags.push_back(etag);
  return absl::OkStatus();
}

absl::Status S3Staging::SendFullTail() {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, ReadTail());
  const std::string sent_tail = TailPath();
  OPTFARM_RETURN_IF_ERROR(SendPart(bytes));
  ResumableSha256 hash = hash_;
  hash.Update(bytes);
  upload_->hash = hash.Save();
  if (absl::Status status = home_.index.AddPart(
          name_, parts(), upload_->etags.back(), upload_->hash, absl::Now());
      !status.ok()) {
    upload_->etags.pop_back();
    return status;
  }
  hash_ = hash;
  tail_.reset();
  OPTFARM_RETURN_IF_ERROR(home_.files.Remove(sent_tail));
  return OpenTail();
}

absl::Status S3Staging::Append(absl::string_view bytes) {
  while (!bytes.empty()) {
    if (tail_bytes_ == part_bytes_) OPTFARM_RETURN_IF_ERROR(SendFullTail());
    const size_t room = static_cast<size_t>(part_bytes_ - tail_bytes_);
    const absl::string_view piece = bytes.substr(0, room);
    if (absl::Status status = tail_->Append(piece); !status.ok()) {
      trusted_ = false;
      return status;
    }
    tail_bytes_ += static_cast<int64_t>(piece.size());
    staged_ += static_cast<int64_t>(piece.size());
    bytes.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::Status S3Staging::Check() {
  OPTFARM_ASSIGN_OR_RETURN(last_part_, ReadTail());
  ResumableSha256 hash = hash_;
  hash.Update(last_part_);
  const std::string digest = hash.Digest();
  if (digest == id_.sha256 && hash.bytes() == id_.size_bytes) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "upload refused: ", id_.size_bytes, " bytes came with SHA-256 ", digest,
      " and not the promised ", id_.sha256,
      "; check that the file does not change, and upload it again"));
}

// The last part is not recorded: after a restart it is sent again under its
// number.
absl::Status S3Staging::Publish() {
  if (!upload_) return home_.client.Put(key_, last_part_);
  const size_t recorded = upload_->etags.size();
  absl::Status status =
      last_part_.empty() ? absl::OkStatus() : SendPart(last_part_);
  if (status.ok()) {
    status =
        home_.client.CompleteUpload(key_, upload_->upload_id, upload_->etags);
  }
  upload_->etags.resize(recorded);
  // An upload that is gone may have been completed by a call whose answer was
  // lost.
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  return CheckPublished();
}

// Only uploads whose hash was right are completed, so the size tells enough.
absl::Status S3Staging::CheckPublished() {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t size, home_.client.SizeOf(key_));
  if (size == id_.size_bytes) return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(home_.client.Delete(key_));
  return absl::DataLossError(absl::StrCat(
      "uploading blob ", id_.sha256, ": the store made an object of ", size,
      " and not ", id_.size_bytes, " bytes; upload it again"));
}

absl::Status S3Staging::Forget() {
  last_part_.clear();
  tail_.reset();
  OPTFARM_RETURN_IF_ERROR(home_.files.Remove(TailPath()));
  if (!upload_) return absl::OkStatus();
  return home_.index.RemoveUpload(name_);
}

absl::Status S3Staging::Drop() {
  last_part_.clear();
  tail_.reset();
  const absl::Status removed = home_.files.Remove(TailPath());
  if (upload_) {
    const absl::Status aborted =
        home_.client.AbortUpload(key_, upload_->upload_id);
    if (!aborted.ok()) {
      LogWarning("an upload's parts stay in the bucket for now: ",
                 aborted.message());
    }
    OPTFARM_RETURN_IF_ERROR(home_.index.RemoveUpload(name_));
  }
  upload_.reset();
  hash_ = ResumableSha256();
  tail_bytes_ = 0;
  staged_ = 0;
  trusted_ = true;
  return removed;
}

absl::Status S3Staging::Sync() {
  return tail_ == nullptr ? absl::OkStatus() : tail_->Sync();
}

}  // namespace optfarm::storage
