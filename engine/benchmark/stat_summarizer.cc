// Column widths, headings and the order of ties' op types are those of
// TensorFlow 1.x: scripts cut these tables into columns.

#include "engine/benchmark/stat_summarizer.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "engine/graph/attr.h"

namespace optfarm::benchmark {
namespace {

std::string Title(absl::string_view title) {
  const std::string line(30, '=');
  return absl::StrCat(line, " ", title, " ", line, "\n");
}

double Percent(double part, double whole) {
  return whole > 0 ? part * 100 / whole : 0;
}

// Values in thousands of their unit.
double Kilo(double value) { return value / 1000; }

std::string NodeHeading() {
  return absl::StrFormat("\t%24s\t%9s\t%9s\t%9s\t%8s\t%8s\t%10s\t%9s\t%s\n",
                         "[node type]", "[start]", "[first]", "[avg ms]", "[%]",
                         "[cdf%]", "[mem KB]", "[times called]", "[Name]");
}

std::string TypeHeading() {
  return absl::StrFormat("\t%24s\t%9s\t%10s\t%11s\t%11s\t%10s\t%10s\n",
                         "[Node type]", "[count]", "[avg ms]", "[avg %]",
                         "[cdf %]", "[mem KB]", "[times called]");
}

}  // namespace

StatSummarizer::StatSummarizer(const StatSummarizerOptions& options)
    : options_(options) {}

void StatSummarizer::AddRun(const runtime::RunTrace& trace) {
  int64_t run_micros = 0;
  int64_t run_bytes = 0;
  for (const runtime::NodeTiming& timing : trace.nodes) {
    const auto [it, added] = index_.emplace(timing.name, nodes_.size());
    if (added) {
      nodes_.emplace_back().name = timing.name;
      nodes_.back().op = timing.op;
    }
    NodeStats& node = nodes_[it->second];
    const int64_t micros = absl::ToInt64Microseconds(timing.duration);
    node.start.Add(absl::ToInt64Microseconds(timing.start));
    node.duration.Add(micros);
    node.memory.Add(timing.output_bytes);
    node.outputs = timing.outputs;
    ++node.times_called;
    run_micros += micros;
    run_bytes += timing.output_bytes;
  }
  run_micros_.Add(run_micros);
  run_bytes_.Add(run_bytes);
}

std::vector<TypeStats> StatSummarizer::Types() const {
  const int64_t runs = std::max<int64_t>(run_micros_.count(), 1);
  std::map<std::string, TypeStats> by_op;
  for (const NodeStats& node : nodes_) {
    TypeStats& type = by_op[node.op];
    type.op = node.op;
    ++type.nodes;
    type.micros += node.duration.sum() / runs;
    type.memory += node.memory.newest();
    type.times_called += node.times_called / runs;
  }
  std::vector<TypeStats> types;
  for (auto& [op, type] : by_op) types.push_back(std::move(type));
  std::sort(types.begin(), types.end(),
            [](const TypeStats& a, const TypeStats& b) {
              return std::tie(a.micros, a.op) > std::tie(b.micros, b.op);
            });
  return types;
}

std::string StatSummarizer::NodeSection(absl::string_view title, Metric metric,
                                        int limit) const {
  std::vector<const NodeStats*> order;
  for (const NodeStats& node : nodes_) order.push_back(&node);
  if (metric != Metric::kRunOrder) {
    const auto key = [metric](const NodeStats* node) {
      return metric == Metric::kTime ? node->duration.avg()
                                     : node->memory.avg();
    };
    std::stable_sort(order.begin(), order.end(),
                     [&key](const NodeStats* a, const NodeStats* b) {
                       return key(a) > key(b);
                     });
  }
  if (limit > 0 && order.size() > static_cast<size_t>(limit)) {
    order.resize(limit);
  }
  const int64_t runs = std::max<int64_t>(run_micros_.count(), 1);
  const auto total = static_cast<double>(run_micros_.sum());
  std::string text = absl::StrCat(Title(title), NodeHeading());
  double cumulative = 0;
  for (const NodeStats* node : order) {
    const auto sum = static_cast<double>(node->duration.sum());
    cumulative += sum;
    absl::StrAppendFormat(
        &text,
        "\t%24s\t%9.3f\t%9.3f\t%9.3f\t%7.3f%%\t%7.3f%%\t%10.3f\t%9d\t%s\n",
        node->op, Kilo(node->start.avg()),
        Kilo(static_cast<double>(node->duration.first())),
        Kilo(node->duration.avg()), Percent(sum, total),
        Percent(cumulative, total),
        Kilo(static_cast<double>(node->memory.newest())),
        node->times_called / runs, node->name);
  }
  return absl::StrCat(text, "\n");
}

std::string StatSummarizer::TypeSection() const {
  const std::vector<TypeStats> types = Types();
  double total = 0;
  for (const TypeStats& type : types) total += static_cast<double>(type.micros);
  std::string text =
      absl::StrCat("Number of nodes executed: ", nodes_.size(), "\n",
                   Title("Summary by node type"), TypeHeading());
  double cumulative = 0;
  for (const TypeStats& type : types) {
    const auto micros = static_cast<double>(type.micros);
    cumulative += micros;
    absl::StrAppendFormat(
        &text, "\t%24s\t%9d\t%10.3f\t%10.3f%%\t%10.3f%%\t%10.3f\t%9d\n",
        type.op, type.nodes, Kilo(micros), Percent(micros, total),
        Percent(cumulative, total), Kilo(static_cast<double>(type.memory)),
        type.times_called);
  }
  return absl::StrCat(text, "\n");
}

std::string StatSummarizer::ShortSummary() const {
  return absl::StrCat("Timings (microseconds): ", run_micros_.ToString(),
                      "\nMemory (bytes): ", run_bytes_.ToString(), "\n",
                      nodes_.size(), " nodes observed\n\n");
}

std::string StatSummarizer::Report() const {
  std::string text;
  if (options_.show_run_order) {
    text +=
        NodeSection("Run Order", Metric::kRunOrder, options_.run_order_limit);
  }
  if (options_.show_time) {
    text += NodeSection("Top by Computation Time", Metric::kTime,
                        options_.time_limit);
  }
  if (options_.show_memory) {
    text += NodeSection("Top by Memory Use", Metric::kMemory,
                        options_.memory_limit);
  }
  if (options_.show_type) text += TypeSection();
  if (options_.show_summary) text += ShortSummary();
  return text;
}

std::string StatSummarizer::OutputSizes() const {
  std::string text =
      "============ Node output tensor sizes in run order ========\n";
  for (const NodeStats& node : nodes_) {
    absl::StrAppend(&text, node.name, "\t", node.outputs.size());
    for (const runtime::OutputInfo& output : node.outputs) {
      absl::StrAppend(&text, "\t", graph::DataTypeName(output.dtype), "\t",
                      output.shape.rank());
      for (const int64_t dim : output.shape.dims()) {
        absl::StrAppend(&text, "\t", dim);
      }
    }
    text.push_back('\n');
  }
  return text;
}

}  // namespace optfarm::benchmark
