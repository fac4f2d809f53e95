// ResultService of a server that stands by: the results of a job, read from the
// database. All other questions go to the leader, which answers them from the
// numbers that it has in memory; from here they would be work of the database,
// which all servers share.

#ifndef OPTFARM_SERVER_STANDBY_RESULTS_H_
#define OPTFARM_SERVER_STANDBY_RESULTS_H_

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "optfarm/v1/results.grpc.pb.h"
#include "server/access/admitted_service.h"
#include "server/forwarding/call_forwarder.h"
#include "server/forwarding/followed_access.h"
#include "server/forwarding/leader_door.h"
#include "storage/postgres/follower.h"

namespace optfarm::server {

// THREADS: safe.
class StandbyResults final
    : public AdmittedService<v1::ResultService::Service> {
 public:
  // OWNERSHIP: all outlive it.
  StandbyResults(const LeaderDoor& door, FollowedAccess& access,
                 CallForwarder& forwarder, const std::string& database);

  grpc::Status QueryResults(grpc::ServerContext* context,
                            const v1::QueryResultsRequest* request,
                            v1::QueryResultsResponse* response) override;

  // Questions that were answered here.
  int64_t served() const { return served_; }

 private:
  // False: it is for the leader.
  bool Serve(const grpc::ServerContext& context,
             const v1::QueryResultsRequest& request,
             v1::QueryResultsResponse& response, absl::Status& status);

  FollowedAccess& access_;
  CallForwarder& forwarder_;
  storage::PostgresResultReader reader_;
  std::atomic<int64_t> served_ = 0;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_STANDBY_RESULTS_H_
