#include "engine/benchmark/trace_file.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/json_string.h"
#include "engine/graph/attr.h"

namespace optfarm::benchmark {
namespace {

// Rows of the page.
constexpr int kRunRow = 0;
constexpr int kNodeRow = 1;

// Between the bars of two runs.
constexpr absl::Duration kGap = absl::Microseconds(10);

std::string Micros(absl::Duration duration) {
  return JsonNumber(absl::ToDoubleMicroseconds(duration));
}

std::string Metadata(absl::string_view kind, int row, absl::string_view name) {
  return absl::StrCat("{\"name\":", JsonString(kind),
                      ",\"ph\":\"M\",\"pid\":1,\"tid\":", row,
                      ",\"args\":{\"name\":", JsonString(name), "}}");
}

std::string Bar(absl::string_view name, absl::string_view category, int row,
                absl::Duration start, absl::Duration duration,
                absl::string_view args) {
  return absl::StrCat(
      "{\"name\":", JsonString(name), ",\"cat\":", JsonString(category),
      ",\"ph\":\"X\",\"pid\":1,\"tid\":", row, ",\"ts\":", Micros(start),
      ",\"dur\":", Micros(duration), ",\"args\":{", args, "}}");
}

std::string NodeArgs(const runtime::NodeTiming& node) {
  const auto describe = [](std::string* out, const runtime::OutputInfo& info) {
    absl::StrAppend(out, graph::DataTypeName(info.dtype),
                    info.shape.ToString());
  };
  return absl::StrCat(
      "\"op\":", JsonString(node.op), ",\"bytes\":", node.output_bytes,
      ",\"outputs\":", JsonString(absl::StrJoin(node.outputs, " ", describe)),
      node.fused_names.empty()
          ? ""
          : absl::StrCat(",\"nodes\":",
                         JsonString(absl::StrJoin(node.fused_names, " "))));
}

absl::Duration EndOf(const runtime::RunTrace& trace) {
  absl::Duration end;
  for (const runtime::NodeTiming& node : trace.nodes) {
    end = std::max(end, node.start + node.duration);
  }
  return end;
}

}  // namespace

std::string TraceFileJson(absl::Span<const runtime::RunTrace> traces,
                          absl::string_view name) {
  std::string json =
      absl::StrCat("{\"displayTimeUnit\":\"ms\",", "\"traceEvents\":[\n",
                   Metadata("process_name", 0, name), ",\n",
                   Metadata("thread_name", kRunRow, "runs"), ",\n",
                   Metadata("thread_name", kNodeRow, "nodes"));
  absl::Duration offset;
  for (size_t i = 0; i < traces.size(); ++i) {
    const absl::Duration end = EndOf(traces[i]);
    absl::StrAppend(
        &json, ",\n",
        Bar(absl::StrCat("run ", i + 1), "run", kRunRow, offset, end,
            absl::StrCat("\"nodes\":", traces[i].nodes.size())));
    for (const runtime::NodeTiming& node : traces[i].nodes) {
      absl::StrAppend(&json, ",\n",
                      Bar(node.name, node.op, kNodeRow, offset + node.start,
                          node.duration, NodeArgs(node)));
    }
    offset += end + kGap;
  }
  return absl::StrCat(json, "\n]}\n");
}

}  // namespace optfarm::benchmark
