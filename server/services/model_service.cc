#include "server/services/model_service.h"

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

constexpr char kUpload[] = "optfarm.v1.ModelService.Upload";
constexpr int kMaxDigests = 20000;
constexpr size_t kMaxChunkBytes = 4 << 20;

}  // namespace

ModelServiceImpl::ModelServiceImpl(
    const CallDoor& door, storage::BlobStore& blobs,
    storage::MetadataStore& store, BlobJanitor& janitor,
    TransferWatch& transfers, const ProjectLimitsTable& limits,
    BlobDownloads& downloads, ProjectBlobs& project_blobs, Clock& clock)
    : door_(door),
      blobs_(blobs),
      store_(store),
      janitor_(janitor),
      transfers_(transfers),
      limits_(limits),
      project_blobs_(project_blobs),
      clock_(clock) {
  AdmitUnary(door, "optfarm.v1.ModelService.FindMissing",
             &Service::FindMissing);
  AdmitUnary(door, "optfarm.v1.ModelService.QueryUpload",
             &Service::QueryUpload);
  AdmitUnary(door, "optfarm.v1.ModelService.ListBlobs", &Service::ListBlobs);
  AdmitUnary(door, "optfarm.v1.ModelService.RemoveBlobs",
             &Service::RemoveBlobs);
  AdmitUpload<v1::UploadRequest, v1::UploadResponse>(
      kUpload, [this](grpc::ServerContext& context, const ReadPart& read,
                      v1::UploadResponse& response) {
        return door_.Serve(context, kUpload, [&](Call& call) {
          return Receive(call, context, read, response);
        });
      });
  AdmitDownload<v1::DownloadRequest, v1::DownloadResponse>(
      [&door](grpc::ServerContext& context) {
        return door.Enter(context, kDownload);
      },
      kDownload,
      [&door, &downloads](grpc::ServerContext& context,
                          const v1::DownloadRequest& request,
                          const WritePiece& write) {
        return door.Serve(context, kDownload, [&](Call& call) {
          return downloads.Send(call, context, request, write);
        });
      });
}

grpc::Status ModelServiceImpl::FindMissing(
    grpc::ServerContext* context, const v1::FindMissingRequest* request,
    v1::FindMissingResponse* response) {
  return door_.Serve(*context, "optfarm.v1.ModelService.FindMissing",
                     [&](Call& call) {
                       return FindMissing(call.caller, *request, *response);
                     });
}

// A blob that another project brought is not there: who knows its name alone
// has to bring the bytes.
absl::StatusOr<bool> ModelServiceImpl::IsThere(const Caller& caller,
                                               const BlobId& id) {
  if (!caller.OfFarm()) {
    OPTFARM_ASSIGN_OR_RETURN(const bool has,
                             store_.ProjectHasBlob(caller.project, id.sha256));
    if (!has) return false;
  }
  return blobs_.Contains(id, clock_.Now());
}

absl::Status ModelServiceImpl::FindMissing(
    const Caller& caller, const v1::FindMissingRequest& request,
    v1::FindMissingResponse& response) {
  if (request.digests_size() > kMaxDigests) {
    return absl::InvalidArgumentError(
        absl::StrCat("asking for ", request.digests_size(),
                     " digests; ask for at most ", kMaxDigests, " at once"));
  }
  absl::flat_hash_set<std::string> seen;
  for (const v1::Digest& digest : request.digests()) {
    OPTFARM_ASSIGN_OR_RETURN(const BlobId id, BlobIdFromProto(digest));
    if (!seen.insert(id.sha256).second) continue;
    OPTFARM_ASSIGN_OR_RETURN(const bool present, IsThere(caller, id));
    if (!present) *response.add_missing() = digest;
  }
  return absl::OkStatus();
}

grpc::Status ModelServiceImpl::QueryUpload(
    grpc::ServerContext* context, const v1::QueryUploadRequest* request,
    v1::QueryUploadResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.ModelService.QueryUpload",
      [&](Call& call) -> absl::Status {
        OPTFARM_ASSIGN_OR_RETURN(BlobId id, BlobIdFromProto(request->digest()));
        OPTFARM_ASSIGN_OR_RETURN(const bool present, IsThere(call.caller, id));
        if (!present) id.uploader = call.caller.Room();
        OPTFARM_ASSIGN_OR_RETURN(const int64_t committed,
                                 blobs_.CommittedBytes(id));
        response->set_complete(present);
        response->set_committed_bytes(committed);
        return absl::OkStatus();
      });
}

grpc::Status ModelServiceImpl::ListBlobs(grpc::ServerContext* context,
                                         const v1::ListBlobsRequest* request,
                                         v1::ListBlobsResponse* response) {
  return door_.Serve(
      *context, "optfarm.v1.ModelService.ListBlobs", [&](Call& call) {
        return project_blobs_.List(call.caller, *request, *response);
      });
}

grpc::Status ModelServiceImpl::RemoveBlobs(
    grpc::ServerContext* context, const v1::RemoveBlobsRequest* request,
    v1::RemoveBlobsResponse* response) {
  return door_.Serve(*context, "optfarm.v1.ModelService.RemoveBlobs",
                     [&](Call& call) {
                       return project_blobs_.Remove(call, *request, *response);
                     });
}

absl::Status ModelServiceImpl::CheckQuota(const Caller& caller,
                                          const BlobId& id) {
  const int64_t most = limits_.Of(caller.project).max_bytes;
  if (caller.OfFarm() || most == 0) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(
      const storage::ProjectUsage usage,
      store_.GetProjectUsage(caller.project, absl::InfiniteFuture()));
  if (usage.bytes <= most - id.size_bytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "uploading ", id.size_bytes, " bytes: the files of the project ",
      caller.project, " have ", usage.bytes, " of the ", most,
      " bytes that they may have; remove some (optctl blobs list, optctl blobs "
      "rm), or ask the operator for a higher max_bytes of the project"));
}

absl::Status ModelServiceImpl::Grant(const Caller& caller, const BlobId& id) {
  // What workers and agents bring belongs to the job they bring it for.
  if (!caller.May(v1::Access::SUBMIT)) return absl::OkStatus();
  storage::WriteBatch batch;
  batch.project_blobs.emplace_back(caller.project, id);
  return store_.Commit(batch);
}

absl::Status ModelServiceImpl::Receive(Call& call, grpc::ServerContext& context,
                                       const ReadPart& read,
                                       v1::UploadResponse& response) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::unique_ptr<TransferWatch::Transfer> transfer,
      transfers_.Begin(
          OwnerOf(call.caller), [&context] { context.TryCancel(); },
          clock_.Now()));
  const auto open = door_.HoldOpen(context, call.caller);
  v1::UploadRequest request;
  absl::Status part = read(request);
  if (absl::IsOutOfRange(part)) return WhyBroken(*transfer);
  OPTFARM_RETURN_IF_ERROR(part);
  OPTFARM_ASSIGN_OR_RETURN(BlobId id, BlobIdFromProto(request.digest()));
  call.subject = id.sha256;
  response.set_committed_bytes(id.size_bytes);
  OPTFARM_ASSIGN_OR_RETURN(const bool present, IsThere(call.caller, id));
  if (present) {
    response.set_already_present(true);
    return absl::OkStatus();
  }
  OPTFARM_RETURN_IF_ERROR(CheckQuota(call.caller, id));
  // Staged bytes are shared within a project and by what is of the farm.
  id.uploader = call.caller.Room();
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<storage::BlobUpload> upload,
                           janitor_.OpenUpload(id, clock_.Now()));
  do {
    if (request.data().size() > kMaxChunkBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("uploading blob ", id.sha256, ": a message has ",
                       request.data().size(), " bytes of data; send at most ",
                       kMaxChunkBytes));
    }
    const int64_t before = upload->staged_bytes();
    OPTFARM_RETURN_IF_ERROR(upload->Append(request.offset(), request.data()));
    // What was there before is no progress.
    transfer->Moved(static_cast<size_t>(
        std::max<int64_t>(0, upload->staged_bytes() - before)));
    if (upload->staged_bytes() >= id.size_bytes) break;
    part = read(request);
  } while (part.ok());
  if (!part.ok() && !absl::IsOutOfRange(part)) return part;
  // Incomplete: a client that went away, or one that has more to send later.
  if (upload->staged_bytes() < id.size_bytes &&
      (context.IsCancelled() || transfer->Stalled())) {
    return WhyBroken(*transfer);
  }
  OPTFARM_RETURN_IF_ERROR(upload->Finish(clock_.Now()));
  return Grant(call.caller, id);
}

}  // namespace optfarm::server
