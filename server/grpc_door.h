// The gRPC door as any server has it: limits, TLS, health and reflection.

#ifndef OPTFARM_SERVER_GRPC_DOOR_H_
#define OPTFARM_SERVER_GRPC_DOOR_H_

#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "server/grpc_listener.h"
#include "server/server.h"

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace optfarm::server {

// With a place for both ends of a UNIX socket there is nothing to count, and no
// listener.
struct GrpcDoor {
  // OWNERSHIP: it goes before the listener, which counts its connections.
  std::unique_ptr<GrpcListener> listener;
  std::unique_ptr<grpc::Server> server;
  // HOST:PORT with the port that was really taken.
  std::string address;
  // Begins to accept connections. Once, while the listener is there.
  std::function<void()> accept = [] {};
};

// Takes the address that the options say, with what `add_services` adds, which
// outlives the door. ERRORS: those of the TLS files; Unavailable when the
// address cannot be had.
absl::StatusOr<GrpcDoor> OpenGrpcDoor(
    const ServerOptions& options,
    absl::FunctionRef<void(grpc::ServerBuilder&)> add_services);

// What the health service says of all services.
void SetServing(grpc::Server& server, bool serving);

// Whether the files of both doors fit together. ERRORS: those of the files.
absl::Status CheckTls(const rpc::ServerTls& tls);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_GRPC_DOOR_H_
