// What every call passes before its service sees it: who calls, and whether
// they may. And the way back: absl::Status becomes gRPC status here.

#ifndef OPTFARM_SERVER_CALL_DOOR_H_
#define OPTFARM_SERVER_CALL_DOOR_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/access_control.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace optfarm::server {

// THREADS: safe.
class CallDoor {
 public:
  // OWNERSHIP: `access` outlives the door.
  explicit CallDoor(AccessControl& access) : access_(access) {}

  // Lets a call of `method` in, "optfarm.v1.JobService.GetJob".
  // ERRORS: Unauthenticated, PermissionDenied.
  absl::StatusOr<Caller> Admit(const grpc::ServerContextBase& context,
                               const std::string& method) const;

  // Answers a call: with the door's refusal, or with what `handler` returns.
  template <typename Handler>
  grpc::Status Serve(const grpc::ServerContextBase& context,
                     const std::string& method, Handler handler) const {
    absl::Status status = Admit(context, method).status();
    if (status.ok()) status = handler();
    return Answer(status);
  }

  // The same for what has no scopes of its own: the operator's.
  template <typename Handler>
  grpc::Status Serve(const grpc::ServerContextBase& context,
                     Handler handler) const {
    return Serve(context, "", handler);
  }

  // Converts for the wire and logs what is our own trouble.
  static grpc::Status Answer(const absl::Status& status);

 private:
  AccessControl& access_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_CALL_DOOR_H_
