#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/json_string.h"
#include "engine/api/handles.h"
#include "engine/graph/attr.h"

namespace optfarm::api {
namespace {

std::string NodeJson(const runtime::NodeTiming& node) {
  const auto output = [](std::string* out, const runtime::OutputInfo& info) {
    absl::StrAppend(
        out, "{\"dtype\":", JsonString(graph::DataTypeName(info.dtype)),
        ",\"shape\":[", absl::StrJoin(info.shape.dims(), ","), "]}");
  };
  std::string fused;
  if (!node.fused_names.empty()) {
    const auto name = [](std::string* out, const std::string& text) {
      out->append(JsonString(text));
    };
    fused = absl::StrCat(",\"fused_names\":[",
                         absl::StrJoin(node.fused_names, ",", name), "]");
  }
  return absl::StrCat(
      "{\"name\":", JsonString(node.name), ",\"op\":", JsonString(node.op),
      ",\"start_us\":", JsonNumber(absl::ToDoubleMicroseconds(node.start)),
      ",\"duration_us\":",
      JsonNumber(absl::ToDoubleMicroseconds(node.duration)),
      ",\"output_bytes\":", node.output_bytes, ",\"outputs\":[",
      absl::StrJoin(node.outputs, ",", output), "]", fused, "}");
}

}  // namespace

std::string TraceJson(const runtime::RunTrace& trace) {
  return absl::StrCat(
      "{\"nodes\":[\n",
      absl::StrJoin(trace.nodes, ",\n",
                    [](std::string* out, const runtime::NodeTiming& node) {
                      out->append(NodeJson(node));
                    }),
      "\n]}\n");
}

}  // namespace optfarm::api
