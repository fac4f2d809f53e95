// ModelService of a server that stands by: downloads, whose bytes it reads from
// the store that all servers share, once the leader has granted them. All other
// methods go to the leader.

#ifndef OPTFARM_SERVER_STANDBY_DOWNLOADS_H_
#define OPTFARM_SERVER_STANDBY_DOWNLOADS_H_

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "base/clock.h"
#include "optfarm/v1/models.grpc.pb.h"
#include "server/access/admitted_service.h"
#include "server/forwarding/call_forwarder.h"
#include "server/forwarding/download_grant.h"
#include "server/forwarding/leader_door.h"
#include "server/services/blob_downloads.h"
#include "server/services/transfer_watch.h"
#include "storage/blob_source.h"

namespace optfarm::server {

// THREADS: safe.
class StandbyDownloads final
    : public AdmittedService<v1::ModelService::Service> {
 public:
  // Without a source, all goes to the leader. OWNERSHIP: all else outlives it.
  StandbyDownloads(const LeaderDoor& door, CallForwarder& forwarder,
                   std::unique_ptr<storage::BlobSource> source,
                   TransferWatch& transfers, Clock& clock);

  // Downloads whose bytes were sent from here to their end.
  int64_t served() const { return served_; }

 private:
  absl::Status Serve(grpc::ServerContext& context,
                     const v1::DownloadRequest& request,
                     const WritePiece& write);
  // Sends what was granted, and moves the beginning of the range on.
  // ERRORS: those of SendRange; Aborted when the grant holds no longer.
  absl::Status SendGranted(grpc::ServerContext& context, DownloadGrant& grant,
                           const std::string& sha256, BlobRange& range,
                           const WritePiece& write);
  // Has the leader send the bytes.
  absl::Status PassOn(grpc::ServerContext& context,
                      const v1::DownloadRequest& request,
                      const WritePiece& write);

  CallForwarder& forwarder_;
  const std::unique_ptr<storage::BlobSource> source_;
  TransferWatch& transfers_;
  Clock& clock_;
  std::atomic<int64_t> served_ = 0;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_STANDBY_DOWNLOADS_H_
