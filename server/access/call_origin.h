// Where a call comes from, when others stand between its sender and who serves
// it: the HTTP door of this process, or a server that sends calls on.

#ifndef OPTFARM_SERVER_ACCESS_CALL_ORIGIN_H_
#define OPTFARM_SERVER_ACCESS_CALL_ORIGIN_H_

#include <string>

#include "absl/strings/string_view.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace optfarm::server {

// Metadata of a call that a server has sent on: the leader's secret, see
// storage/postgres/leader_watch.h.
inline constexpr char kForwardedKey[] = "optfarm-forwarded";

struct CallOrigin {
  // For the audit log.
  std::string peer;
  // Its sender has shown a certificate that TLS accepted.
  bool certified = false;
};

// Whether a server sends it that has read the leader's secret; with an empty
// one there is none.
bool KnowsSecret(const grpc::ServerContextBase& context,
                 absl::string_view secret);

// What the HTTP door says is believed, and what a server says that knows the
// `secret`; empty: nobody does.
CallOrigin OriginOf(const grpc::ServerContextBase& context,
                    absl::string_view secret);

// The span that a call is a child of, as its metadata `traceparent` has it,
// without what later versions add; empty without one, and, as W3C's Trace
// Context wants it, when it is malformed or comes twice.
std::string TraceParentOf(const grpc::ServerContextBase& context);

// Whether a server, or somebody who acts as one, has sent it on.
bool WasForwarded(const grpc::ServerContextBase& context);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_CALL_ORIGIN_H_
