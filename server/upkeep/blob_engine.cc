#include "server/upkeep/blob_engine.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "storage/file_blob_store.h"
#include "storage/s3/s3_blob_store.h"
#include "storage/s3/s3_location.h"

namespace optfarm::server {
namespace {

constexpr char kNoDownloads[] = "none";

absl::StatusOr<std::unique_ptr<storage::BlobStore>> OpenBucket(
    const BlobEngineOptions& options, const BlobLimits& limits,
    const DataDir& data_dir) {
  storage::S3BlobStoreOptions s3;
  storage::S3TransportOptions& transport = s3.client.transport;
  OPTFARM_ASSIGN_OR_RETURN(
      transport.location,
      storage::ParseS3Location(options.blobs, options.s3_endpoint,
                               options.s3_region, options.s3_path_style));
  OPTFARM_ASSIGN_OR_RETURN(
      transport.credentials,
      storage::ReadS3Credentials(options.s3_credentials_file));
  if (options.s3_download_endpoint != kNoDownloads) {
    OPTFARM_ASSIGN_OR_RETURN(
        const storage::S3Location seen,
        storage::ParseS3Location(options.blobs,
                                 options.s3_download_endpoint.empty()
                                     ? options.s3_endpoint
                                     : options.s3_download_endpoint,
                                 options.s3_region, options.s3_path_style));
    s3.download_endpoint = seen.endpoint;
  }
  s3.folder = JoinPath(data_dir.path(), "s3");
  s3.term = options.term;
  s3.max_blob_bytes = limits.max_blob_bytes;
  s3.max_total_bytes = limits.max_store_bytes;
  s3.reserved_free_bytes = limits.reserved_free_bytes;
  return storage::OpenS3BlobStore(s3);
}

absl::StatusOr<std::string> FolderOf(const BlobEngineOptions& options,
                                     const DataDir& data_dir) {
  if (options.s3_path_style || !options.s3_endpoint.empty() ||
      !options.s3_region.empty() || !options.s3_credentials_file.empty() ||
      !options.s3_download_endpoint.empty()) {
    return absl::InvalidArgumentError(
        "the flags --s3_... are for --blobs=s3://BUCKET/PREFIX: give that too, "
        "or leave them out");
  }
  if (options.blobs.empty()) return data_dir.blobs();
  absl::string_view folder = options.blobs;
  if (absl::ConsumePrefix(&folder, "file:") && !folder.empty()) {
    return std::string(folder);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--blobs '", absl::CHexEscape(options.blobs.substr(0, 200)),
      "' cannot be used: write file:FOLDER or s3://BUCKET/PREFIX"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<storage::BlobStore>> OpenBlobs(
    const BlobEngineOptions& options, const BlobLimits& limits,
    const DataDir& data_dir) {
  if (absl::StartsWith(options.blobs, "s3:")) {
    return OpenBucket(options, limits, data_dir);
  }
  storage::FileBlobStoreOptions file;
  OPTFARM_ASSIGN_OR_RETURN(file.root, FolderOf(options, data_dir));
  file.max_blob_bytes = limits.max_blob_bytes;
  file.max_total_bytes = limits.max_store_bytes;
  file.reserved_free_bytes = limits.reserved_free_bytes;
  return storage::OpenFileBlobStore(file);
}

}  // namespace optfarm::server
