// TokenService: making, listing and revoking tokens.

#ifndef OPTFARM_SERVER_SERVICES_TOKEN_SERVICE_H_
#define OPTFARM_SERVER_SERVICES_TOKEN_SERVICE_H_

#include "base/clock.h"
#include "optfarm/v1/tokens.grpc.pb.h"
#include "server/access/access_control.h"
#include "server/access/admitted_service.h"
#include "server/access/call_door.h"
#include "server/scheduling/scheduler.h"

namespace optfarm::server {

// THREADS: safe. OWNERSHIP: all outlive the service.
class TokenServiceImpl final
    : public AdmittedService<v1::TokenService::Service> {
 public:
  TokenServiceImpl(const CallDoor& door, AccessControl& access,
                   Scheduler& scheduler, Clock& clock);

  grpc::Status WhoAmI(grpc::ServerContext* context,
                      const v1::WhoAmIRequest* request,
                      v1::WhoAmIResponse* response) override;
  grpc::Status CreateToken(grpc::ServerContext* context,
                           const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override;
  grpc::Status ListTokens(grpc::ServerContext* context,
                          const v1::ListTokensRequest* request,
                          v1::ListTokensResponse* response) override;
  grpc::Status RevokeToken(grpc::ServerContext* context,
                           const v1::RevokeTokenRequest* request,
                           v1::Token* response) override;

 private:
  absl::Status Create(const v1::CreateTokenRequest& request,
                      v1::CreateTokenResponse& response);

  const CallDoor& door_;
  AccessControl& access_;
  Scheduler& scheduler_;
  Clock& clock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_TOKEN_SERVICE_H_
