// One WatchJobs stream: keeps the last of each job that changed until the
// client has read what came before it.

#ifndef OPTFARM_SERVER_DELIVERY_JOB_LIST_WATCH_H_
#define OPTFARM_SERVER_DELIVERY_JOB_LIST_WATCH_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "optfarm/v1/farm.pb.h"
#include "server/access/admitted_service.h"
#include "server/access/call_room.h"
#include "server/delivery/job_list_feed.h"
#include "server/delivery/watch_stream.h"

namespace optfarm::server {

using JobListReactor =
    grpc::ServerBidiReactor<BoundedRequest<v1::WatchJobsRequest>,
                            v1::JobListEvent>;

// Starts to answer a WatchJobs call; the reactor lives until gRPC is done with
// it. The request is read if the call `entered`, and answered if `admit` lets
// it. OWNERSHIP: the feed outlives the server's last call.
JobListReactor* StartJobListWatch(
    absl::StatusOr<std::unique_ptr<CallRoom::Stay>> entered,
    std::function<absl::StatusOr<AdmittedWatch>()> admit, JobListFeed& feed);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_JOB_LIST_WATCH_H_
