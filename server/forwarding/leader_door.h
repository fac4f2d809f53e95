// Lets in calls whose bytes a server that stands by moves or answers itself.

#ifndef OPTFARM_SERVER_FORWARDING_LEADER_DOOR_H_
#define OPTFARM_SERVER_FORWARDING_LEADER_DOOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "server/access/call_room.h"
#include "server/forwarding/call_forwarder.h"
#include "server/forwarding/followed_access.h"

namespace optfarm::server {

// THREADS: safe.
class LeaderDoor {
 public:
  // OWNERSHIP: all outlive it.
  LeaderDoor(const CallForwarder& forwarder, FollowedAccess& access,
             CallRoom& room, Clock& clock)
      : forwarder_(forwarder), access_(access), room_(room), clock_(clock) {}

  // Whether a call of `method` may be made, and gives it room for its request,
  // which is still to come. ERRORS: those of CallDoor::Enter, which are always
  // the leader's; Unavailable when nobody leads who could be asked.
  absl::StatusOr<std::unique_ptr<CallRoom::Stay>> Enter(
      grpc::ServerContext& context, const std::string& method) const;

 private:
  // Whose room it takes.
  absl::StatusOr<std::string> RoomOf(const grpc::ServerContext& context,
                                     const std::string& method) const;

  const CallForwarder& forwarder_;
  FollowedAccess& access_;
  CallRoom& room_;
  Clock& clock_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_FORWARDING_LEADER_DOOR_H_
