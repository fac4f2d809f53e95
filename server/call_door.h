// What every call passes before its service sees it: the bearer token. And the
// way back: absl::Status becomes gRPC status here.

#ifndef OPTFARM_SERVER_CALL_DOOR_H_
#define OPTFARM_SERVER_CALL_DOOR_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace optfarm::server {

// THREADS: safe.
class CallDoor {
 public:
  // With an empty token everybody is let in.
  explicit CallDoor(const std::string& token);

  // ERRORS: Unauthenticated. The message never says how wrong a token was.
  absl::Status Admit(const grpc::ServerContextBase& context) const;

  // Answers a call: with the door's refusal, or with what `handler` returns.
  template <typename Handler>
  grpc::Status Serve(const grpc::ServerContextBase& context,
                     Handler handler) const {
    absl::Status status = Admit(context);
    if (status.ok()) status = handler();
    return Answer(status);
  }

  // Converts for the wire and logs what is our own trouble.
  static grpc::Status Answer(const absl::Status& status);

 private:
  // SHA-256 of the token, so that comparing takes the same time for all.
  std::string token_hash_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_CALL_DOOR_H_
