// One WatchJob stream: reads events from the store when it hears of news, and
// writes them at the client's pace. Between two events it costs no thread and
// no query.

#ifndef OPTFARM_SERVER_DELIVERY_JOB_WATCH_H_
#define OPTFARM_SERVER_DELIVERY_JOB_WATCH_H_

#include <grpcpp/support/server_callback.h>

#include "optfarm/v1/jobs.pb.h"
#include "server/delivery/event_hub.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// Starts to answer a WatchJob call; the reactor lives until gRPC is done with
// it. OWNERSHIP: hub and store outlive the server's last call.
grpc::ServerWriteReactor<v1::JobEvent>* StartJobWatch(
    const v1::WatchJobRequest& request, EventHub& hub,
    storage::MetadataStore& store);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_JOB_WATCH_H_
