// What traces of jobs and of tunes are made of.

#ifndef OPTFARM_SERVER_DELIVERY_TRACE_PARTS_H_
#define OPTFARM_SERVER_DELIVERY_TRACE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "opentelemetry/traces.pb.h"
#include "optfarm/v1/jobs.pb.h"
#include "rpc/trace_parent.h"

namespace optfarm::server {

// The service that the spans of jobs and tunes belong to.
struct TracedServer {
  // service.instance.id and service.version.
  std::string instance;
  std::string version;
};

// Bits of Span.flags: the trace is recorded; whether the parent is in another
// process is known; and it is.
inline constexpr uint32_t kSampledSpan = 0x001;
inline constexpr uint32_t kParentKnown = 0x100;
inline constexpr uint32_t kParentRemote = 0x200;

// The ids of the trace and of the span that are made of an id of ours.
struct TraceIds {
  std::string trace_id;
  std::string span_id;
};
TraceIds TraceIdsOf(absl::string_view id);

// REQUIRES: no other span of the trace has this name.
std::string SpanIdOf(absl::string_view name);

// The caller's span, where a tag of the spec has its traceparent; none where it
// has no such tag, or a malformed one.
std::optional<rpc::TraceParent> ParentOf(const v1::JobSpec& spec);

// Cut to what a trace may hold, in UTF-8.
std::string TraceText(absl::string_view text);

// Attributes of a span, an event or a resource. What is empty is left out.
class Attributes {
 public:
  explicit Attributes(google::protobuf::RepeatedPtrField<otlp::KeyValue>* to)
      : to_(*to) {}

  Attributes& Set(absl::string_view key, absl::string_view text) {
    if (!text.empty()) Add(key).set_string_value(TraceText(text));
    return *this;
  }
  Attributes& SetInt(absl::string_view key, int64_t value) {
    Add(key).set_int_value(value);
    return *this;
  }
  Attributes& SetDouble(absl::string_view key, double value) {
    Add(key).set_double_value(value);
    return *this;
  }
  Attributes& SetBool(absl::string_view key, bool value) {
    Add(key).set_bool_value(value);
    return *this;
  }
  template <typename Texts>
  Attributes& SetList(absl::string_view key, const Texts& texts) {
    if (texts.empty()) return *this;
    otlp::ArrayValue& list = *Add(key).mutable_array_value();
    for (const auto& text : texts) {
      list.add_values()->set_string_value(TraceText(text));
    }
    return *this;
  }

 private:
  otlp::AnyValue& Add(absl::string_view key);

  google::protobuf::RepeatedPtrField<otlp::KeyValue>& to_;
};

void SetTimes(absl::Time start, absl::Time end, otlp::Span& span);

// Where the spans of a service's instance go.
otlp::ScopeSpans& AddService(const std::string& name,
                             const std::string& instance,
                             otlp::ExportTraceServiceRequest& trace);

// The same for the server itself. REQUIRES: `trace` is empty.
otlp::ScopeSpans& AddServer(const TracedServer& server,
                            otlp::ExportTraceServiceRequest& trace);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_TRACE_PARTS_H_
