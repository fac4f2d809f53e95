#include "server/forwarding/leader_door.h"

#include <grpcpp/server_context.h>

#include <utility>

#include "base/status_macros.h"
#include "optfarm/servers/v1/leader.grpc.pb.h"
#include "rpc/status.h"

namespace optfarm::server {

absl::StatusOr<Caller> LeaderDoor::Ask(const grpc::ServerContext& context,
                                       const std::string& method,
                                       bool counts) const {
  OPTFARM_ASSIGN_OR_RETURN(const auto place, forwarder_.Enter(context));
  servers::v1::AdmitCallRequest request;
  request.set_method(method);
  request.set_counts(counts);
  servers::v1::AdmitCallResponse response;
  OPTFARM_RETURN_IF_ERROR(
      place->Outcome(servers::v1::LeaderService::NewStub(place->channel())
                         ->AdmitCall(&place->context(), request, &response)));
  Caller caller;
  caller.scopes = response.scopes();
  caller.project = response.project();
  return caller;
}

absl::StatusOr<std::unique_ptr<CallRoom::Stay>> LeaderDoor::Enter(
    grpc::ServerContext& context, const std::string& method) const {
  absl::StatusOr<Caller> caller = Ask(context, method, /*counts=*/false);
  // A leader of an older version, which will see the call itself.
  const bool unknown = absl::IsUnimplemented(caller.status());
  if (!caller.ok() && !unknown) return caller.status();
  return room_.Enter(
      unknown ? "" : caller->Room(), CallRoom::Served::kByThread,
      [&context] { context.TryCancel(); }, clock_.Now());
}

absl::StatusOr<Caller> LeaderDoor::Admit(const grpc::ServerContext& context,
                                         const std::string& method) const {
  return Ask(context, method, /*counts=*/true);
}

}  // namespace optfarm::server
