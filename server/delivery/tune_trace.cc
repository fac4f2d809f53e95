#include "server/delivery/tune_trace.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rpc/proto_time.h"

namespace optfarm::server {

std::string TuneTraceParent(const std::string& tune_id) {
  const TraceIds ids = TraceIdsOf(tune_id);
  return absl::StrCat("00-", absl::BytesToHexString(ids.trace_id), "-",
                      absl::BytesToHexString(ids.span_id), "-01");
}

otlp::ExportTraceServiceRequest TuneTrace(const v1::Tune& tune,
                                          const TracedServer& server) {
  otlp::ExportTraceServiceRequest trace;
  const auto parent = ParentOf(tune.spec().job());
  if (parent && !parent->sampled) return trace;
  const TraceIds ids = TraceIdsOf(tune.tune_id());
  otlp::Span& span = *AddServer(server, trace).add_spans();
  span.set_trace_id(parent ? parent->trace_id : ids.trace_id);
  span.set_span_id(ids.span_id);
  if (parent) span.set_parent_span_id(parent->span_id);
  span.set_name("tune");
  span.set_kind(otlp::Span::SPAN_KIND_SERVER);
  span.set_flags(kSampledSpan | kParentKnown | (parent ? kParentRemote : 0));
  SetTimes(rpc::FromTimestamp(tune.create_time()),
           rpc::FromTimestamp(tune.end_time()), span);
  Attributes(span.mutable_attributes())
      .Set("optfarm.tune.id", tune.tune_id())
      .Set("optfarm.tune.state", v1::TuneState_Name(tune.state()))
      .Set("optfarm.job.name", tune.job_name())
      .Set("optfarm.project", tune.project())
      .Set("optfarm.model.name", tune.report().model_name())
      .Set("optfarm.model.sha256", tune.report().model().sha256())
      .SetList("optfarm.devices", tune.spec().devices())
      .SetInt("optfarm.tune.judged", tune.report().judged())
      .SetInt("optfarm.tune.measured", tune.report().measured());
  if (tune.state() == v1::TUNE_SUCCEEDED) {
    span.mutable_status()->set_code(otlp::Status::STATUS_CODE_OK);
  } else if (tune.state() == v1::TUNE_FAILED) {
    span.mutable_status()->set_code(otlp::Status::STATUS_CODE_ERROR);
    span.mutable_status()->set_message(TraceText(tune.failure()));
  }
  return trace;
}

}  // namespace optfarm::server
