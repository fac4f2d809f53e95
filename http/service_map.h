// What a front answers for: the services through their http options, and
// pages of the program's own beside them.

#ifndef OPTFARM_HTTP_SERVICE_MAP_H_
#define OPTFARM_HTTP_SERVICE_MAP_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "http/backend.h"
#include "http/message.h"
#include "http/request_reader.h"
#include "http/route_table.h"
#include "rpc/message_bounds.h"

namespace optfarm::http {

// What a call may bring, once it is known who makes it.
struct CallPermit {
  // Kept as long as the request is held.
  std::shared_ptr<void> room;
  rpc::MessageBounds bounds;
};

// Answers requests for one path. THREADS: called from many threads.
using Page = std::function<Reply(const RequestHead&)>;

struct ServiceMap {
  RouteTable routes;
  std::unique_ptr<Backend> backend;
  // By path, for GET and HEAD. Before any route.
  std::map<std::string, Page> pages;
  // By the beginning of a path that goes on, "/report/", for GET and HEAD.
  // After `pages`, before any route.
  std::map<std::string, Page> page_folders;
  // By verb and path, "POST /session". They take no body.
  std::map<std::string, Page> actions;
  // Looks at each request before it is answered and before its body is read;
  // may give it the Authorization that a cookie stands for. An error is the
  // answer. May be empty. THREADS: called from many threads.
  std::function<absl::Status(RequestHead&)> admit;
  // Says whether a call may be made before a byte of its body is read, of which
  // `body_bytes` are announced or could come. An error is the answer. May be
  // empty. THREADS: called from many threads.
  std::function<absl::StatusOr<CallPermit>(
      const BackendCall& call, const std::string& method, size_t body_bytes)>
      admit_call;
  // Paths of pages that tell how the server does, for probes.
  std::set<std::string> health_pages;
  Limits limits;
  // Refuse requests for other hosts than this machine's loopback: a page that
  // a browser here has open must not reach a server that wants no token.
  bool loopback_hosts_only = false;
};

// What a connection is told and tells.
struct ConnectionHooks {
  // Asked between requests: no more are wanted.
  std::function<bool()> stop;
  // Told when a request has come, and when it has been answered.
  std::function<void(bool busy)> note_busy = [](bool) {};
  // There is only room for a question about health.
  bool health_only = false;
};

// Answers requests on one connection until it ends or may not be used longer.
void ServeConnection(ByteStream& stream, const ServiceMap& services,
                     const ConnectionHooks& hooks);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_SERVICE_MAP_H_
