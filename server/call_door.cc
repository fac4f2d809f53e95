#include "server/call_door.h"

#include <grpcpp/server_context.h>

#include "base/log.h"
#include "base/status_macros.h"
#include "rpc/channel.h"
#include "rpc/status.h"

namespace optfarm::server {

absl::StatusOr<Caller> CallDoor::Admit(const grpc::ServerContextBase& context,
                                       const std::string& method) const {
  const auto& metadata = context.client_metadata();
  // The first one counts, so that nobody can try many in one call.
  const auto found = metadata.find(rpc::kAuthorizationKey);
  const absl::string_view authorization =
      found == metadata.end()
          ? absl::string_view()
          : absl::string_view(found->second.data(), found->second.size());
  OPTFARM_ASSIGN_OR_RETURN(Caller caller, access_.Identify(authorization));
  OPTFARM_RETURN_IF_ERROR(access_.Check(caller, method));
  return caller;
}

grpc::Status CallDoor::Answer(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kInternal ||
      status.code() == absl::StatusCode::kUnknown ||
      status.code() == absl::StatusCode::kDataLoss) {
    LogError("answering a call with ", status.ToString());
  }
  return rpc::ToGrpc(status);
}

}  // namespace optfarm::server
