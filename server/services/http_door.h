// The HTTP door of this server: the services by their http options, and pages
// about the server itself.

#ifndef OPTFARM_SERVER_SERVICES_HTTP_DOOR_H_
#define OPTFARM_SERVER_SERVICES_HTTP_DOOR_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "http/front.h"
#include "http/request_reader.h"
#include "http/service_map.h"
#include "server/access/browser_sessions.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace optfarm::server {

struct HttpDoorOptions {
  http::FrontOptions front;
  http::Limits limits;
  // Nobody needs a token, so only this machine's browser tabs that mean this
  // server may ask.
  bool loopback_hosts_only = false;
  // Calls the services in this process.
  std::shared_ptr<grpc::Channel> channel;
  // As http::ServiceMap's.
  std::function<absl::StatusOr<http::CallPermit>(const http::BackendCall& call,
                                                 const std::string& method,
                                                 size_t body_bytes)>
      admit_call;
  // OK when calls would be served.
  std::function<absl::Status()> ready;
  // Whether who sends this may read.
  std::function<absl::Status(const http::RequestHead& head)> may_read;
  // Numbers in Prometheus' text format.
  std::function<std::string()> metrics;
  // OWNERSHIP: outlives the door.
  BrowserSessions* sessions = nullptr;
};

// ERRORS: those of http::Front::Start.
absl::StatusOr<std::unique_ptr<http::Front>> OpenHttpDoor(
    const HttpDoorOptions& options);

// What stands at the address while the stores are opened, which may take
// minutes: /livez says that the process lives, /readyz and all else are
// answered with 503, so that probes wait and clients try again.
// ERRORS: those of http::Front::Start.
absl::StatusOr<std::unique_ptr<http::Front>> OpenStartingDoor(
    const http::FrontOptions& front, const http::Limits& limits);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_HTTP_DOOR_H_
