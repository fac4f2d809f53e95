// One of several servers of a database: leads, or stands by until the leader is
// gone. What calls that come to any of them do is decided by the leader.
//
//   stands by ──the lease is free, and taken──▶ leads
//   leads ──the lease was lost, or could not be renewed──▶ stands by

#ifndef OPTFARM_SERVER_MEMBER_H_
#define OPTFARM_SERVER_MEMBER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/server.h"

namespace optfarm::server {

// Leads, or stands by, when it returns. REQUIRES: options.advertise.
// ERRORS: InvalidArgument when other options do not go with several servers;
// those of Server::Start.
absl::StatusOr<std::unique_ptr<Server>> StartMember(ServerOptions options);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_MEMBER_H_
