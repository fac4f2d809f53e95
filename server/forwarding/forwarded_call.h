// One call that is sent on to the leader: bytes both ways, one message at a
// time in each direction, so that a slow end slows the other; and metadata,
// deadline, cancellation and outcome.

#ifndef OPTFARM_SERVER_FORWARDING_FORWARDED_CALL_H_
#define OPTFARM_SERVER_FORWARDING_FORWARDED_CALL_H_

#include <grpcpp/generic/async_generic_service.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/forwarding/leader_lanes.h"

namespace optfarm::server {

// A place for a call to the leader in the name of one that came here: with its
// metadata, deadline and cancellation. ERRORS: those of LeaderLanes::Enter.
absl::StatusOr<std::unique_ptr<LeaderLanes::Place>> EnterFor(
    const grpc::ServerContextBase& context, LeaderLanes& leader);

// Sends the call on. The reactor is gRPC's, and deletes itself.
grpc::ServerGenericBidiReactor* ForwardCall(
    grpc::GenericCallbackServerContext* context,
    const std::shared_ptr<LeaderLanes>& leader);

// Answers a call at once. The reactor is gRPC's, and deletes itself.
grpc::ServerGenericBidiReactor* AnswerCall(const grpc::Status& status);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_FORWARDING_FORWARDED_CALL_H_
