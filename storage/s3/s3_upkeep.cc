#include "storage/s3/s3_upkeep.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

constexpr char kBlobs[] = "blobs/";

}  // namespace

absl::Status ListBlobsOnce(S3Client& client, S3Index& index) {
  OPTFARM_ASSIGN_OR_RETURN(const bool listed, index.IsListed());
  if (listed) return absl::OkStatus();
  size_t found = 0;
  std::string from;
  do {
    OPTFARM_ASSIGN_OR_RETURN(S3ObjectPage page, client.List(kBlobs, from));
    std::vector<S3BlobRecord> blobs;
    for (const S3Object& object : page.objects) {
      const std::string sha256 = BaseName(object.key);
      // Not what this store wrote.
      if (!IsSha256Hex(sha256) || object.key != S3BlobKey(sha256)) continue;
      blobs.push_back({sha256, object.size_bytes, object.modified});
    }
    OPTFARM_RETURN_IF_ERROR(index.PutBlobs(blobs));
    found += blobs.size();
    from = std::move(page.next);
  } while (!from.empty());
  LogInfo("the bucket ", client.location().bucket, " holds ", found, " blobs");
  return index.SetListed();
}

absl::Status ForgetStaged(const S3StagingHome& home, absl::Time before,
                          const absl::flat_hash_set<std::string>& open) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           home.files.List(home.folder));
  absl::flat_hash_set<std::string> left = open;
  for (const std::string& file : files) {
    const std::string name = file.substr(0, file.rfind('.'));
    if (open.contains(name)) continue;
    const std::string path = JoinPath(home.folder, file);
    const absl::StatusOr<FileInfo> info = home.files.Stat(path);
    if (!info.ok() || info->modified >= before) {
      left.insert(name);
      continue;
    }
    OPTFARM_RETURN_IF_ERROR(home.files.Remove(path));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<S3UploadRecord> stale,
                           home.index.StaleUploads(before));
  for (const S3UploadRecord& upload : stale) {
    if (left.contains(upload.name)) continue;
    OPTFARM_RETURN_IF_ERROR(home.index.RemoveUpload(upload.name));
  }
  return absl::OkStatus();
}

absl::Status AbortUnknownUploads(S3Client& client, S3Index& index,
                                 absl::Time before) {
  S3UploadPage page;
  do {
    OPTFARM_ASSIGN_OR_RETURN(
        page, client.ListUploads(kBlobs, page.next_key, page.next_id));
    for (const S3OpenUpload& upload : page.uploads) {
      if (upload.begun >= before) continue;
      // Not what this store wrote.
      const std::string sha256 = BaseName(upload.key);
      if (!IsSha256Hex(sha256) || upload.key != S3BlobKey(sha256)) continue;
      OPTFARM_ASSIGN_OR_RETURN(const bool known,
                               index.KnowsUpload(upload.upload_id));
      if (known) continue;
      OPTFARM_RETURN_IF_ERROR(client.AbortUpload(upload.key, upload.upload_id));
    }
  } while (!page.next_key.empty());
  return absl::OkStatus();
}

}  // namespace optfarm::storage
