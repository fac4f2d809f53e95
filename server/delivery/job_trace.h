// What became of a job, as a trace of OpenTelemetry: who waited for whom, who
// worked how long, and on what.
//
//   job                                  optfarm-server
//     optimize task                      optfarm-server
//       wait                             optfarm-server
//       optimize attempt                 optfarm-worker
//         fetching files, loading, ...   optfarm-worker
//     benchmark task, for each device    optfarm-server
//       wait                             optfarm-server
//       benchmark attempt                optfarm-agent
//         measuring with 1 thread, ...   optfarm-agent
//
// All of it is known to the server: phones and workers reach no collector. All
// times but those within attributes are the server's.

#ifndef OPTFARM_SERVER_DELIVERY_JOB_TRACE_H_
#define OPTFARM_SERVER_DELIVERY_JOB_TRACE_H_

#include <string>

#include "absl/status/statusor.h"
#include "opentelemetry/traces.pb.h"
#include "server/delivery/trace_parts.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// The trace of a job that has ended, the same whenever it is asked for: ids are
// made of the job's, so that what is sent twice is there once. The trace id is
// the caller's, where a tag of the job has its traceparent (trace_parent.h);
// else the first 16 bytes of the SHA-256 of the job's id. Empty where the
// caller records no trace. ERRORS: NotFound; those of the store.
absl::StatusOr<otlp::ExportTraceServiceRequest> ReadJobTrace(
    storage::MetadataStore& store, const std::string& job_id,
    const TracedServer& server);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_JOB_TRACE_H_
