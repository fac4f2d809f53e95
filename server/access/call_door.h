// What every call passes before its service sees it: who calls, and whether
// they may. And the way back: absl::Status becomes gRPC status here.

#ifndef OPTFARM_SERVER_ACCESS_CALL_DOOR_H_
#define OPTFARM_SERVER_ACCESS_CALL_DOOR_H_

#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "server/access/access_control.h"
#include "server/access/audit_log.h"
#include "server/access/call_room.h"
#include "server/access/open_calls.h"
#include "server/access/project_limits.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace optfarm::server {

// What is known of a call while it is served.
struct Call {
  Caller caller;
  // What it is done to, for the audit log; set by who serves it.
  std::string subject = {};
};

// What a call says of itself before its request: gRPC's metadata, or what an
// HTTP request becomes.
struct CallHead {
  // The value of the header Authorization.
  std::string authorization;
  // Where it comes from, for the audit log.
  std::string peer;
  // It came with a certificate that TLS accepted.
  bool certified = false;
};

// What gRPC's metadata say. `secret` as OriginOf's.
CallHead HeadOf(const grpc::ServerContextBase& context,
                const std::string& secret);

// THREADS: safe.
class CallDoor {
 public:
  // With `needs_certificate`, workers and agents must show one with every call.
  // Servers that send calls on show the `secret`; empty: there are none.
  // OWNERSHIP: all outlive the door.
  CallDoor(AccessControl& access, AuditLog& audit,
           const ProjectLimitsTable& limits, CallRoom& room, Clock& clock,
           bool needs_certificate, std::string secret = "")
      : access_(access),
        audit_(audit),
        room_(room),
        rate_(limits),
        clock_(clock),
        needs_certificate_(needs_certificate),
        secret_(std::move(secret)) {}

  // Whether a call of `method`, "optfarm.v1.JobService.GetJob", may be made:
  // all that is known before its request. Refusals go into the audit log.
  // ERRORS: Unauthenticated, PermissionDenied.
  absl::StatusOr<Caller> Screen(const CallHead& head,
                                const std::string& method) const;

  // The same for a call over gRPC.
  absl::StatusOr<Caller> Screen(const grpc::ServerContextBase& context,
                                const std::string& method) const;

  // Screens a call and gives it room for its request, which is still to come.
  // ERRORS: those of Screen and CallRoom::Enter.
  absl::StatusOr<std::unique_ptr<CallRoom::Stay>> Enter(
      grpc::ServerContextBase& context, const std::string& method,
      CallRoom::Served served = CallRoom::Served::kByThread) const;

  // The same for a request of `bytes` that comes over HTTP.
  // ERRORS: those of Screen and CallRoom::Reserve.
  absl::StatusOr<std::unique_ptr<CallRoom::Stay>> Reserve(
      const CallHead& head, const std::string& method, size_t bytes) const;

  // Lets a call of `method` in, "optfarm.v1.JobService.GetJob".
  // ERRORS: Unauthenticated, PermissionDenied, ResourceExhausted.
  absl::StatusOr<Caller> Admit(const grpc::ServerContextBase& context,
                               const std::string& method) const;

  // Has `note` called with the name of each connection, as gRPC calls it, over
  // which a call with a token has come. REQUIRES: no call is served yet.
  void SetNoteToken(std::function<void(absl::string_view)> note) {
    note_token_ = std::move(note);
  }

  // Has a call end when its caller's token does. `context` lives at least as
  // long as what is returned.
  std::unique_ptr<OpenCalls::Open> HoldOpen(
      const grpc::ServerContextBase& context, const Caller& caller) const;

  // Answers a call: with the door's refusal, or with what `handler` returns,
  // which may take the Call.
  template <typename Handler>
  grpc::Status Serve(const grpc::ServerContextBase& context,
                     const std::string& method, Handler handler) const {
    absl::StatusOr<Caller> caller = Admit(context, method);
    if (!caller.ok()) return Answer(caller.status());
    Call call{*std::move(caller)};
    absl::Status status;
    if constexpr (std::is_invocable_v<Handler, Call&>) {
      status = handler(call);
    } else {
      status = handler();
    }
    NoteDone(context, method, call, status);
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
  // Screen, for a call over gRPC.
  absl::StatusOr<Caller> ScreenCall(const grpc::ServerContextBase& context,
                                    const CallHead& head,
                                    const std::string& method) const;
  void NoteRefusal(const CallHead& head, const std::string& method,
                   const Caller& caller, const absl::Status& status,
                   absl::Time now) const;
  void NoteDone(const grpc::ServerContextBase& context,
                const std::string& method, const Call& call,
                const absl::Status& status) const;

  AccessControl& access_;
  AuditLog& audit_;
  CallRoom& room_;
  mutable CallRate rate_;
  Clock& clock_;
  const bool needs_certificate_;
  const std::string secret_;
  std::function<void(absl::string_view)> note_token_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_CALL_DOOR_H_
