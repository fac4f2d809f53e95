#include "server/model_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::BlobId;
using ::optfarm::storage::BlobIdFromProto;

constexpr int kMaxDigests = 20000;
constexpr size_t kMaxChunkBytes = 4 << 20;
constexpr int64_t kDownloadChunkBytes = 1 << 20;

absl::Status WhyBroken(const TransferWatch::Transfer& transfer) {
  if (transfer.Stalled()) {
    return absl::DeadlineExceededError(
        "nothing came for too long; go on from the committed offset");
  }
  return absl::CancelledError("the transfer was broken off");
}

}  // namespace

grpc::Status ModelServiceImpl::FindMissing(
    grpc::ServerContext* context, const v1::FindMissingRequest* request,
    v1::FindMissingResponse* response) {
  return door_.Serve(*context, "optfarm.v1.ModelService.FindMissing",
                     [&] { return FindMissing(*request, *response); });
}

absl::Status ModelServiceImpl::FindMissing(
    const v1::FindMissingRequest& request, v1::FindMissingResponse& response) {
  if (request.digests_size() > kMaxDigests) {
    return absl::InvalidArgumentError(
        absl::StrCat("asking for ", request.digests_size(),
                     " digests; ask for at most ", kMaxDigests, " at once"));
  }
  const absl::Time now = clock_.Now();
  absl::flat_hash_set<std::string> seen;
  for (const v1::Digest& digest : request.digests()) {
    OPTFARM_ASSIGN_OR_RETURN(const BlobId id, BlobIdFromProto(digest));
    if (!seen.insert(id.sha256).second) continue;
    OPTFARM_ASSIGN_OR_RETURN(const bool present, blobs_.Contains(id, now));
    if (!present) *response.add_missing() = digest;
  }
  return absl::OkStatus();
}

grpc::Status ModelServiceImpl::QueryUpload(
    grpc::ServerContext* context, const v1::QueryUploadRequest* request,
    v1::QueryUploadResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.ModelService.QueryUpload", [&]() -> absl::Status {
        OPTFARM_ASSIGN_OR_RETURN(const BlobId id,
                                 BlobIdFromProto(request->digest()));
        OPTFARM_ASSIGN_OR_RETURN(const bool present,
                                 blobs_.Contains(id, clock_.Now()));
        OPTFARM_ASSIGN_OR_RETURN(const int64_t committed,
                                 blobs_.CommittedBytes(id));
        response->set_complete(present);
        response->set_committed_bytes(committed);
        return absl::OkStatus();
      });
}

grpc::Status ModelServiceImpl::Upload(
    grpc::ServerContext* context, grpc::ServerReader<v1::UploadRequest>* reader,
    v1::UploadResponse* response) {
  return door_.Serve(*context, "optfarm.v1.ModelService.Upload",
                     [&] { return Receive(*context, *reader, *response); });
}

absl::Status ModelServiceImpl::Receive(
    grpc::ServerContext& context, grpc::ServerReader<v1::UploadRequest>& reader,
    v1::UploadResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::unique_ptr<TransferWatch::Transfer> transfer,
      transfers_.Begin([&context] { context.TryCancel(); }, clock_.Now()));
  v1::UploadRequest request;
  if (!reader.Read(&request)) return WhyBroken(*transfer);
  OPTFARM_ASSIGN_OR_RETURN(const BlobId id, BlobIdFromProto(request.digest()));
  response.set_committed_bytes(id.size_bytes);
  OPTFARM_ASSIGN_OR_RETURN(const bool present,
                           blobs_.Contains(id, clock_.Now()));
  if (present) {
    response.set_already_present(true);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<storage::BlobUpload> upload,
                           janitor_.OpenUpload(id, clock_.Now()));
  do {
    transfer->Moved(clock_.Now());
    if (request.data().size() > kMaxChunkBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("uploading blob ", id.sha256, ": a message has ",
                       request.data().size(), " bytes of data; send at most ",
                       kMaxChunkBytes));
    }
    OPTFARM_RETURN_IF_ERROR(upload->Append(request.offset(), request.data()));
  } while (upload->staged_bytes() < id.size_bytes && reader.Read(&request));
  // Incomplete: a client that went away, or one that has more to send later.
  if (upload->staged_bytes() < id.size_bytes &&
      (context.IsCancelled() || transfer->Stalled())) {
    return WhyBroken(*transfer);
  }
  return upload->Finish(clock_.Now());
}

grpc::Status ModelServiceImpl::Download(
    grpc::ServerContext* context, const v1::DownloadRequest* request,
    grpc::ServerWriter<v1::DownloadResponse>* writer) {
  return door_.Serve(*context, "optfarm.v1.ModelService.Download",
                     [&] { return Send(*context, *request, *writer); });
}

absl::Status ModelServiceImpl::Send(
    grpc::ServerContext& context, const v1::DownloadRequest& request,
    grpc::ServerWriter<v1::DownloadResponse>& writer) {
  OPTFARM_ASSIGN_OR_RETURN(const BlobId id, BlobIdFromProto(request.digest()));
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<storage::BlobReader> blob,
                           blobs_.OpenBlob(id.sha256));
  const int64_t size = blob->size_bytes();
  if ((id.size_bytes != 0 && id.size_bytes != size) || request.offset() < 0 ||
      request.offset() > size || request.max_bytes() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "downloading blob ", id.sha256, " of ", size, " bytes: size ",
        id.size_bytes, ", offset ", request.offset(), " and max_bytes ",
        request.max_bytes(), " do not fit"));
  }
  OPTFARM_RETURN_IF_ERROR(
      blobs_.Contains(BlobId{id.sha256, size}, clock_.Now()).status());
  OPTFARM_ASSIGN_OR_RETURN(
      const std::unique_ptr<TransferWatch::Transfer> transfer,
      transfers_.Begin([&context] { context.TryCancel(); }, clock_.Now()));
  int64_t left = size - request.offset();
  if (request.max_bytes() > 0) left = std::min(left, request.max_bytes());
  v1::DownloadResponse response;
  response.set_total_bytes(size);
  response.set_offset(request.offset());
  do {
    OPTFARM_ASSIGN_OR_RETURN(
        *response.mutable_data(),
        blob->Read(response.offset(), std::min(left, kDownloadChunkBytes)));
    const int64_t sent = static_cast<int64_t>(response.data().size());
    if (!writer.Write(response)) return WhyBroken(*transfer);
    transfer->Moved(clock_.Now());
    left -= sent;
    response.set_offset(response.offset() + sent);
    response.clear_total_bytes();
  } while (left > 0);
  return absl::OkStatus();
}

}  // namespace optfarm::server
