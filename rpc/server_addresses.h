// A farm's address as its clients are given it: one server, or several of which
// any answers.

#ifndef OPTFARM_RPC_SERVER_ADDRESSES_H_
#define OPTFARM_RPC_SERVER_ADDRESSES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::rpc {

// UNITS: addresses in one list.
inline constexpr int kMaxServers = 16;

// Checks that `target` is HOST:PORT, [IPV6]:PORT or unix:PATH.
// ERRORS: InvalidArgument with the value and what is allowed.
absl::Status CheckTarget(absl::string_view target);

// Checks one target, or up to kMaxServers with commas between them, which may
// not be unix sockets. ERRORS: as CheckTarget.
absl::Status CheckServers(absl::string_view servers);

// A list of servers in gRPC's words.
struct ServerTarget {
  // Tried from left to right.
  std::string uri;
  // What their certificates have to name: the first server. Empty: what gRPC
  // makes of the URI.
  std::string authority;
};

// One target stays as it is: gRPC looks its name up, and again after a break.
// The names of several are looked up here, once; a name that nobody knows is
// left out with a warning. ERRORS: those of CheckServers; Unavailable when no
// name is known.
absl::StatusOr<ServerTarget> FindServers(absl::string_view servers);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_SERVER_ADDRESSES_H_
