// One WatchJob stream: reads events from the store when it hears of news, and
// writes them at the client's pace. Between two events it costs no thread and
// no query; for one event it reads that event, never the job.

#ifndef OPTFARM_SERVER_DELIVERY_JOB_WATCH_H_
#define OPTFARM_SERVER_DELIVERY_JOB_WATCH_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optfarm/v1/jobs.pb.h"
#include "server/access/admitted_service.h"
#include "server/access/call_room.h"
#include "server/delivery/event_hub.h"
#include "server/delivery/watch_stream.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

using WatchReactor =
    grpc::ServerBidiReactor<BoundedRequest<v1::WatchJobRequest>, v1::JobEvent>;

// Lets a call in.
using AdmitWatch =
    std::function<absl::StatusOr<AdmittedWatch>(const v1::WatchJobRequest&)>;

// Starts to answer a WatchJob call; the reactor lives until gRPC is done with
// it. The request is read if the call `entered`, and answered if `admit` lets
// it. OWNERSHIP: hub and store outlive the server's last call.
WatchReactor* StartJobWatch(
    absl::StatusOr<std::unique_ptr<CallRoom::Stay>> entered, AdmitWatch admit,
    EventHub& hub, storage::MetadataStore& store);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_JOB_WATCH_H_
