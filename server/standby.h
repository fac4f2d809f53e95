// A server that stands by: both doors are open. It answers what needs only the
// leader's leave, and sends all else on.

#ifndef OPTFARM_SERVER_STANDBY_H_
#define OPTFARM_SERVER_STANDBY_H_

#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "http/front.h"
#include "http/service_map.h"
#include "rpc/held_connection.h"
#include "server/access/browser_sessions.h"
#include "server/access/call_room.h"
#include "server/delivery/ticker.h"
#include "server/forwarding/call_forwarder.h"
#include "server/forwarding/followed_access.h"
#include "server/forwarding/leader_door.h"
#include "server/grpc_listener.h"
#include "server/server.h"
#include "server/services/server_service.h"
#include "server/services/transfer_watch.h"
#include "server/standby_downloads.h"
#include "server/standby_results.h"

namespace optfarm::server {

// THREADS: safe.
class Standby {
 public:
  // Listens where the options say. ERRORS: those of OpenGrpcDoor and
  // OpenHttpDoor.
  static absl::StatusOr<std::unique_ptr<Standby>> Open(
      const ServerOptions& options);
  // Breaks off what is under way.
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  std::string address() const { return address_; }
  std::string http_address() const {
    return http_ == nullptr ? "" : http_->address();
  }
  // As CallForwarder's.
  void SetLeader(const std::optional<storage::LeaderRecord>& leader) {
    forwarder_.SetLeader(leader);
  }
  // As Server's.
  void SetProjectLimits(LimitsByProject limits) {
    access_.SetProjectLimits(std::move(limits));
  }
  absl::Status ReloadTls();
  // Lets calls under way end within `grace`; then nothing is answered.
  void Close(absl::Duration grace);

 private:
  Standby(const ServerOptions& options,
          std::unique_ptr<storage::BlobSource> blobs);
  absl::Time Step(absl::Time now);
  absl::Status Listen();
  absl::Status OpenHttp();
  absl::StatusOr<http::CallPermit> Permit(const std::string& method,
                                          size_t body_bytes);
  // Lets a call in that is answered here.
  absl::StatusOr<std::unique_ptr<CallRoom::Stay>> Enter(
      grpc::ServerContext& context);
  absl::Status MayRead(const std::string& authorization, bool certified);
  ServerRole Role() const;

  const ServerOptions options_;
  CallForwarder forwarder_;
  CallRoom room_;
  TransferWatch transfers_;
  FollowedAccess access_;
  const LeaderDoor door_;
  StandbyDownloads downloads_;
  StandbyResults results_;
  Ticker ticker_;
  BrowserSessions sessions_;
  ServerServiceImpl server_service_;
  // Goes after gRPC's server.
  std::unique_ptr<GrpcListener> listener_;
  std::unique_ptr<grpc::Server> grpc_;
  std::string address_;
  std::shared_ptr<grpc::Channel> inner_;
  std::unique_ptr<rpc::HeldConnection> held_inner_;
  std::unique_ptr<http::Front> http_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_STANDBY_H_
