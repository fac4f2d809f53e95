// ServerService: how one server is. Of several, each answers for itself, the
// one that leads and those that stand by.

#ifndef OPTFARM_SERVER_SERVICES_SERVER_SERVICE_H_
#define OPTFARM_SERVER_SERVICES_SERVER_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "optfarm/v1/servers.grpc.pb.h"
#include "server/access/admitted_service.h"
#include "server/upkeep/self_check.h"

namespace optfarm::server {

inline constexpr char kGetServer[] = "optfarm.v1.ServerService.GetServer";

// As ServerState's.
struct ServerRole {
  bool leads = true;
  std::string leader_address;
  int64_t term = 0;
};

// THREADS: safe.
class ServerServiceImpl final
    : public AdmittedService<v1::ServerService::Service> {
 public:
  // `enter` lets a call in before its request is read; `role` is asked by each
  // call. OWNERSHIP: what they use outlives the service.
  ServerServiceImpl(EnterCall enter, SelfCheckOptions check,
                    std::function<ServerRole()> role);

  grpc::Status GetServer(grpc::ServerContext* context,
                         const v1::GetServerRequest* request,
                         v1::ServerState* response) override;

 private:
  SelfCheck check_;
  const std::function<ServerRole()> role_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_SERVER_SERVICE_H_
