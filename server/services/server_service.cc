#include "server/services/server_service.h"

#include <utility>

namespace optfarm::server {

ServerServiceImpl::ServerServiceImpl(EnterCall enter, SelfCheckOptions check,
                                     std::function<ServerRole()> role)
    : check_(std::move(check)), role_(std::move(role)) {
  AdmitUnaryBy(std::move(enter), kGetServer, &ServerServiceImpl::GetServer);
}

grpc::Status ServerServiceImpl::GetServer(grpc::ServerContext*,
                                          const v1::GetServerRequest*,
                                          v1::ServerState* response) {
  *response = check_.Look();
  const ServerRole role = role_();
  response->set_leads(role.leads);
  response->set_leader_address(role.leader_address);
  response->set_term(role.term);
  return grpc::Status::OK;
}

}  // namespace optfarm::server
