// ModelService on the blob store.

#ifndef OPTFARM_SERVER_MODEL_SERVICE_H_
#define OPTFARM_SERVER_MODEL_SERVICE_H_

#include "base/clock.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "server/blob_janitor.h"
#include "server/call_door.h"
#include "server/transfer_watch.h"
#include "storage/blob_store.h"

namespace optfarm::server {

// THREADS: safe.
class ModelServiceImpl final : public v1::ModelService::Service {
 public:
  // OWNERSHIP: all outlive the service.
  ModelServiceImpl(const CallDoor& door, storage::BlobStore& blobs,
                   BlobJanitor& janitor, TransferWatch& transfers, Clock& clock)
      : door_(door),
        blobs_(blobs),
        janitor_(janitor),
        transfers_(transfers),
        clock_(clock) {}

  grpc::Status FindMissing(grpc::ServerContext* context,
                           const v1::FindMissingRequest* request,
                           v1::FindMissingResponse* response) override;
  grpc::Status QueryUpload(grpc::ServerContext* context,
                           const v1::QueryUploadRequest* request,
                           v1::QueryUploadResponse* response) override;
  grpc::Status Upload(grpc::ServerContext* context,
                      grpc::ServerReader<v1::UploadRequest>* reader,
                      v1::UploadResponse* response) override;
  grpc::Status Download(
      grpc::ServerContext* context, const v1::DownloadRequest* request,
      grpc::ServerWriter<v1::DownloadResponse>* writer) override;

 private:
  absl::Status FindMissing(const v1::FindMissingRequest& request,
                           v1::FindMissingResponse& response);
  absl::Status Receive(grpc::ServerContext& context,
                       grpc::ServerReader<v1::UploadRequest>& reader,
                       v1::UploadResponse& response);
  absl::Status Send(grpc::ServerContext& context,
                    const v1::DownloadRequest& request,
                    grpc::ServerWriter<v1::DownloadResponse>& writer);

  const CallDoor& door_;
  storage::BlobStore& blobs_;
  BlobJanitor& janitor_;
  TransferWatch& transfers_;
  Clock& clock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_MODEL_SERVICE_H_
