// Accepts the connections of the gRPC door, so that they can be counted, and
// broken off where there are too many: gRPC itself takes as many as come.

#ifndef OPTFARM_SERVER_GRPC_LISTENER_H_
#define OPTFARM_SERVER_GRPC_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/access/connection_limits.h"

namespace optfarm::server {

// THREADS: all methods are safe; Start and Stop once each.
class GrpcListener {
 public:
  // Takes a connected socket, which becomes its own.
  using Take = std::function<void(int listener, int socket)>;

  // Listens at HOST:PORT, on all addresses that the host has; port 0 takes a
  // free one. Nothing is accepted yet. Half of the process's descriptors bound
  // the connections, too: each needs two.
  // ERRORS: Unavailable when the address cannot be had.
  static absl::StatusOr<std::unique_ptr<GrpcListener>> Listen(
      const std::string& address, ConnectionLimits::Options limits);

  GrpcListener(const GrpcListener&) = delete;
  GrpcListener& operator=(const GrpcListener&) = delete;
  // Stops.
  ~GrpcListener();

  // HOST:PORT with the port that was really taken.
  const std::string& address() const { return address_; }

  // Begins to accept. `take` is called from a thread of the listener's.
  void Start(Take take);
  // Listens no more. Connections stay with who took them.
  void Stop();

  // Somebody with a token has called over the connection that gRPC calls
  // `name`.
  void NoteToken(absl::string_view name) { limits_.NoteToken(name); }

  // UNITS: connections that are open.
  int connections() const { return limits_.size(); }

 private:
  explicit GrpcListener(const ConnectionLimits::Options& limits);

  absl::Status Bind(const std::string& address);
  void Run();
  // Accepts one connection of a listening socket. False: there is none.
  bool AcceptOne(int listener);
  void Forget(int watched);

  ConnectionLimits limits_;
  std::string address_;
  std::vector<int> listeners_;
  int poll_ = -1;
  int wake_ = -1;
  Take take_;
  std::thread thread_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_GRPC_LISTENER_H_
