// Lets in calls that a server that stands by answers itself: the leader says
// who calls, and whether they may. So a token that was revoked, and a limit
// that was reached, count here as soon as they do there.

#ifndef OPTFARM_SERVER_FORWARDING_LEADER_DOOR_H_
#define OPTFARM_SERVER_FORWARDING_LEADER_DOOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "server/access/access_control.h"
#include "server/access/call_room.h"
#include "server/forwarding/call_forwarder.h"

namespace optfarm::server {

// THREADS: safe.
class LeaderDoor {
 public:
  // OWNERSHIP: all outlive it.
  LeaderDoor(const CallForwarder& forwarder, CallRoom& room, Clock& clock)
      : forwarder_(forwarder), room_(room), clock_(clock) {}

  // Whether a call of `method` may be made, and gives it room for its request,
  // which is still to come. The leader is to be asked about the call again.
  // ERRORS: those of CallDoor::Enter; Unavailable when nobody leads.
  absl::StatusOr<std::unique_ptr<CallRoom::Stay>> Enter(
      grpc::ServerContext& context, const std::string& method) const;

  // Lets a call in that nobody else sees: who calls, as far as that matters for
  // what they see. ERRORS: those of CallDoor::Admit; Unavailable when nobody
  // leads; Unimplemented when the leader wants to see each call itself.
  absl::StatusOr<Caller> Admit(const grpc::ServerContext& context,
                               const std::string& method) const;

 private:
  absl::StatusOr<Caller> Ask(const grpc::ServerContext& context,
                             const std::string& method, bool counts) const;

  const CallForwarder& forwarder_;
  CallRoom& room_;
  Clock& clock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_FORWARDING_LEADER_DOOR_H_
