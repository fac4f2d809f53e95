#include "server/upkeep/blob_engine.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "storage/file_blob_store.h"
#include "storage/s3/s3_blob_source.h"
#include "storage/s3/s3_blob_store.h"
#include "storage/s3/s3_location.h"

namespace optfarm::server {
namespace {

constexpr char kNoDownloads[] = "none";
// Who reads for others can leave it to them, and has to end within seconds.
constexpr absl::Duration kSourcePatience = absl::Seconds(2);

absl::StatusOr<storage::S3ClientOptions> ClientOf(
    const BlobEngineOptions& options) {
  storage::S3ClientOptions client;
  OPTFARM_ASSIGN_OR_RETURN(
      client.transport.location,
      storage::ParseS3Location(options.blobs, options.s3_endpoint,
                               options.s3_region, options.s3_path_style));
  OPTFARM_ASSIGN_OR_RETURN(
      client.transport.credentials,
      storage::ReadS3Credentials(options.s3_credentials_file));
  return client;
}

absl::StatusOr<std::unique_ptr<storage::BlobStore>> OpenBucket(
    const BlobEngineOptions& options, const BlobLimits& limits,
    const DataDir& data_dir) {
  storage::S3BlobStoreOptions s3;
  OPTFARM_ASSIGN_OR_RETURN(s3.client, ClientOf(options));
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

// `otherwise`: where they are when no place is named.
absl::StatusOr<std::string> FolderOf(const BlobEngineOptions& options,
                                     const std::string& otherwise) {
  if (options.s3_path_style || !options.s3_endpoint.empty() ||
      !options.s3_region.empty() || !options.s3_credentials_file.empty() ||
      !options.s3_download_endpoint.empty()) {
    return absl::InvalidArgumentError(
        "the flags --s3_... are for --blobs=s3://BUCKET/PREFIX: give that too, "
        "or leave them out");
  }
  if (options.blobs.empty()) return otherwise;
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
  OPTFARM_ASSIGN_OR_RETURN(file.root, FolderOf(options, data_dir.blobs()));
  file.max_blob_bytes = limits.max_blob_bytes;
  file.max_total_bytes = limits.max_store_bytes;
  file.reserved_free_bytes = limits.reserved_free_bytes;
  return storage::OpenFileBlobStore(file);
}

absl::StatusOr<std::unique_ptr<storage::BlobSource>> OpenBlobSource(
    const BlobEngineOptions& options) {
  if (!absl::StartsWith(options.blobs, "s3:")) {
    OPTFARM_ASSIGN_OR_RETURN(std::string folder, FolderOf(options, ""));
    return storage::MakeFileBlobSource(std::move(folder));
  }
  OPTFARM_ASSIGN_OR_RETURN(storage::S3ClientOptions client, ClientOf(options));
  client.transport.connect_timeout = kSourcePatience;
  client.transport.stall_timeout = kSourcePatience;
  client.max_attempts = 2;
  client.give_up_after = kSourcePatience;
  return storage::MakeS3BlobSource(client);
}

}  // namespace optfarm::server
