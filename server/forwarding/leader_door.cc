#include "server/forwarding/leader_door.h"

#include <grpcpp/server_context.h>

#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "optfarm/servers/v1/leader.grpc.pb.h"
#include "server/access/call_origin.h"

namespace optfarm::server {

absl::StatusOr<std::string> LeaderDoor::RoomOf(
    const grpc::ServerContext& context, const std::string& method) const {
  if (!WasForwarded(context)) {
    const std::optional<Caller> caller = access_.Screen(context, method);
    if (caller) return caller->Room();
  }
  OPTFARM_ASSIGN_OR_RETURN(const auto place, forwarder_.Enter(context));
  servers::v1::AdmitCallRequest request;
  request.set_method(method);
  servers::v1::AdmitCallResponse response;
  const absl::Status status =
      place->Outcome(servers::v1::LeaderService::NewStub(place->channel())
                         ->AdmitCall(&place->context(), request, &response));
  // A leader of an older version, which will see the call itself.
  if (absl::IsUnimplemented(status)) return "";
  OPTFARM_RETURN_IF_ERROR(status);
  return response.room();
}

absl::StatusOr<std::unique_ptr<CallRoom::Stay>> LeaderDoor::Enter(
    grpc::ServerContext& context, const std::string& method) const {
  OPTFARM_ASSIGN_OR_RETURN(const std::string room, RoomOf(context, method));
  return room_.Enter(
      room, CallRoom::Served::kByThread, [&context] { context.TryCancel(); },
      clock_.Now());
}

}  // namespace optfarm::server
