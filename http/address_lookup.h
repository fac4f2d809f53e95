// Names of hosts into addresses, within a time: the system's own way waits for
// as long as its resolvers like, and cannot be told to stop.

#ifndef OPTFARM_HTTP_ADDRESS_LOOKUP_H_
#define OPTFARM_HTTP_ADDRESS_LOOKUP_H_

#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "http/cancellation.h"

namespace optfarm::http {

// Where to connect to.
struct HostAddress {
  int family = 0;
  int type = 0;
  int protocol = 0;
  sockaddr_storage address = {};
  socklen_t length = 0;
};

using AskForAddresses = std::function<absl::StatusOr<std::vector<HostAddress>>(
    const std::string& host, int port)>;

// The system's way, for as long as it takes.
absl::StatusOr<std::vector<HostAddress>> AskSystemForAddresses(
    const std::string& host, int port);

// Asks on a thread of its own and waits until `deadline`, or until it is
// cancelled; `cancellation` may be null. A thread that hangs is left behind; of
// those there are at most sixteen.
// ERRORS: Unavailable, also when too many hang; DeadlineExceeded; Cancelled.
absl::StatusOr<std::vector<HostAddress>> LookUpAddresses(
    const std::string& host, int port, absl::Time deadline,
    const Cancellation* cancellation = nullptr,
    AskForAddresses ask = AskSystemForAddresses);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_ADDRESS_LOOKUP_H_
