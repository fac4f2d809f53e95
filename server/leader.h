// The server that does the work: the only one of a database.

#ifndef OPTFARM_SERVER_LEADER_H_
#define OPTFARM_SERVER_LEADER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/server.h"
#include "server/upkeep/data_dir.h"
#include "storage/postgres/lease.h"

namespace optfarm::server {

// What one of several servers has when it begins to lead; a server alone has
// neither.
struct LeaderTerm {
  // Given back when the server, and who else has it, lets go of it.
  std::shared_ptr<storage::PostgresLease> lease;
  std::shared_ptr<DataDir> data_dir;
};

// Opens the stores, takes over the jobs and begins to listen.
// ERRORS: those of Server::Start.
absl::StatusOr<std::unique_ptr<Server>> StartLeader(ServerOptions options,
                                                    LeaderTerm term);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_LEADER_H_
