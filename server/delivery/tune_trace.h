// What became of a tune, as a span that the traces of its jobs are parts of.

#ifndef OPTFARM_SERVER_DELIVERY_TUNE_TRACE_H_
#define OPTFARM_SERVER_DELIVERY_TUNE_TRACE_H_

#include <string>

#include "opentelemetry/traces.pb.h"
#include "optfarm/v1/tunes.pb.h"
#include "server/delivery/trace_parts.h"

namespace optfarm::server {

// The traceparent (rpc/trace_parent.h) of the jobs that the tune submits. Ids
// are made of the tune's, so that a server that goes on with it says the same.
std::string TuneTraceParent(const std::string& tune_id);

// The span of a tune that has ended: a child of the caller's, where its jobs'
// tags have a traceparent, of which the jobs are children too then. Empty where
// that caller records no trace.
otlp::ExportTraceServiceRequest TuneTrace(const v1::Tune& tune,
                                          const TracedServer& server);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_TUNE_TRACE_H_
