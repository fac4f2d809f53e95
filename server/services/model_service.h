// ModelService on the blob store.

#ifndef OPTFARM_SERVER_SERVICES_MODEL_SERVICE_H_
#define OPTFARM_SERVER_SERVICES_MODEL_SERVICE_H_

#include "base/clock.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "server/access/admitted_service.h"
#include "server/access/call_door.h"
#include "server/access/project_limits.h"
#include "server/services/blob_downloads.h"
#include "server/services/project_blobs.h"
#include "server/services/transfer_watch.h"
#include "server/upkeep/blob_janitor.h"
#include "storage/blob_store.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// THREADS: safe.
class ModelServiceImpl final
    : public AdmittedService<v1::ModelService::Service> {
 public:
  // OWNERSHIP: all outlive the service.
  ModelServiceImpl(const CallDoor& door, storage::BlobStore& blobs,
                   storage::MetadataStore& store, BlobJanitor& janitor,
                   TransferWatch& transfers, const ProjectLimitsTable& limits,
                   BlobDownloads& downloads, ProjectBlobs& project_blobs,
                   Clock& clock);

  grpc::Status FindMissing(grpc::ServerContext* context,
                           const v1::FindMissingRequest* request,
                           v1::FindMissingResponse* response) override;
  grpc::Status QueryUpload(grpc::ServerContext* context,
                           const v1::QueryUploadRequest* request,
                           v1::QueryUploadResponse* response) override;
  grpc::Status ListBlobs(grpc::ServerContext* context,
                         const v1::ListBlobsRequest* request,
                         v1::ListBlobsResponse* response) override;
  grpc::Status RemoveBlobs(grpc::ServerContext* context,
                           const v1::RemoveBlobsRequest* request,
                           v1::RemoveBlobsResponse* response) override;

 private:
  // The next message of an upload. ERRORS: OutOfRange when there is none; what
  // is wrong with it.
  using ReadPart = std::function<absl::Status(v1::UploadRequest&)>;

  // The blob is here and the caller may know of it.
  absl::StatusOr<bool> IsThere(const Caller& caller, const storage::BlobId& id);
  absl::Status FindMissing(const Caller& caller,
                           const v1::FindMissingRequest& request,
                           v1::FindMissingResponse& response);
  absl::Status CheckQuota(const Caller& caller, const storage::BlobId& id);
  // What it is named in the database once the bytes have been brought.
  absl::Status Grant(const Caller& caller, const storage::BlobId& id);
  absl::Status Receive(Call& call, grpc::ServerContext& context,
                       const ReadPart& read, v1::UploadResponse& response);

  const CallDoor& door_;
  storage::BlobStore& blobs_;
  storage::MetadataStore& store_;
  BlobJanitor& janitor_;
  TransferWatch& transfers_;
  const ProjectLimitsTable& limits_;
  ProjectBlobs& project_blobs_;
  Clock& clock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_MODEL_SERVICE_H_
