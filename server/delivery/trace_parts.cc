#include "server/delivery/trace_parts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "base/digest.h"
#include "server/conventions/log_text.h"

namespace optfarm::server {
namespace {

constexpr size_t kMaxTextBytes = 1000;
constexpr size_t kTraceIdBytes = 16;
constexpr size_t kSpanIdBytes = 8;

std::string DigestOf(absl::string_view text) {
  return absl::HexStringToBytes(Sha256Hex(text));
}

}  // namespace

TraceIds TraceIdsOf(absl::string_view id) {
  const std::string digest = DigestOf(id);
  return {digest.substr(0, kTraceIdBytes),
          digest.substr(kTraceIdBytes, kSpanIdBytes)};
}

std::string SpanIdOf(absl::string_view name) {
  return DigestOf(name).substr(0, kSpanIdBytes);
}

std::optional<rpc::TraceParent> ParentOf(const v1::JobSpec& spec) {
  for (absl::string_view tag : spec.tags()) {
    if (!absl::ConsumePrefix(&tag, rpc::kTraceParentTag)) continue;
    absl::StatusOr<rpc::TraceParent> parent = rpc::ParseTraceParent(tag);
    if (parent.ok()) return *std::move(parent);
  }
  return std::nullopt;
}

std::string TraceText(absl::string_view text) {
  return ToUtf8(CutText(text, kMaxTextBytes));
}

otlp::AnyValue& Attributes::Add(absl::string_view key) {
  otlp::KeyValue& added = *to_.Add();
  added.set_key(std::string(key));
  return *added.mutable_value();
}

void SetTimes(absl::Time start, absl::Time end, otlp::Span& span) {
  // The clock may have been set back meanwhile.
  end = std::max(start, end);
  span.set_start_time_unix_nano(
      static_cast<uint64_t>(absl::ToUnixNanos(start)));
  span.set_end_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(end)));
}

otlp::ScopeSpans& AddService(const std::string& name,
                             const std::string& instance,
                             otlp::ExportTraceServiceRequest& trace) {
  otlp::ResourceSpans& made = *trace.add_resource_spans();
  Attributes(made.mutable_resource()->mutable_attributes())
      .Set("service.name", name)
      .Set("service.instance.id", instance);
  otlp::ScopeSpans& spans = *made.add_scope_spans();
  spans.mutable_scope()->set_name("optfarm");
  spans.mutable_scope()->set_version(OPTFARM_VERSION);
  return spans;
}

otlp::ScopeSpans& AddServer(const TracedServer& server,
                            otlp::ExportTraceServiceRequest& trace) {
  otlp::ScopeSpans& spans =
      AddService("optfarm-server", server.instance, trace);
  Attributes(
      trace.mutable_resource_spans(0)->mutable_resource()->mutable_attributes())
      .Set("service.version", server.version);
  return spans;
}

}  // namespace optfarm::server
