// LeaderService: what servers that stand by have this one decide.

#ifndef OPTFARM_SERVER_SERVICES_LEADER_SERVICE_H_
#define OPTFARM_SERVER_SERVICES_LEADER_SERVICE_H_

#include <functional>
#include <string>

#include "optfarm/servers/v1/leader.grpc.pb.h"
#include "server/access/admitted_service.h"
#include "server/access/call_door.h"
#include "server/services/blob_downloads.h"

namespace optfarm::server {

// THREADS: safe. OWNERSHIP: all outlive the service.
class LeaderServiceImpl final
    : public AdmittedService<servers::v1::LeaderService::Service> {
 public:
  // `secret`: what the other servers show.
  LeaderServiceImpl(const CallDoor& door, BlobDownloads& downloads,
                    std::string secret);

 private:
  using ReadWord =
      std::function<absl::Status(servers::v1::GrantDownloadRequest&)>;

  absl::Status Admit(const grpc::ServerContext& context,
                     const servers::v1::AdmitCallRequest& request,
                     servers::v1::AdmitCallResponse& response);
  grpc::Status Grant(grpc::ServerContext& context, const ReadWord& read,
                     const WritePiece& write);

  const CallDoor& door_;
  BlobDownloads& downloads_;
  const std::string secret_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_LEADER_SERVICE_H_
