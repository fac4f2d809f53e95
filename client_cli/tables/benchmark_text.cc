#include "client_cli/tables/benchmark_text.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/human_units.h"
#include "client_cli/tables/proto_json.h"
#include "client_cli/tables/summary_text.h"
#include "engine/graph/attr.h"

namespace optfarm::client_cli {
namespace {

using Align = Table::Align;
using benchmark::ModelBenchmark;
using nlohmann::json;

std::string CountText(double flops) {
  return ShortCount(static_cast<int64_t>(flops));
}

json ToJson(const benchmark::Stat& stat) {
  return {{"count", stat.count()},      {"first", stat.first()},
          {"newest", stat.newest()},    {"min", stat.min()},
          {"max", stat.max()},          {"avg", stat.avg()},
          {"std", stat.std_deviation()}};
}

json OutputsJson(const std::vector<runtime::OutputInfo>& outputs) {
  json list = json::array();
  for (const runtime::OutputInfo& output : outputs) {
    json shape = json::array();
    for (const int64_t dim : output.shape.dims()) shape.push_back(dim);
    list.push_back({{"dtype", graph::DataTypeName(output.dtype)},
                    {"shape", std::move(shape)}});
  }
  return list;
}

json ProfileJson(const ModelBenchmark& benchmark) {
  json nodes = json::array();
  for (const benchmark::NodeStats& node : benchmark.profile.nodes()) {
    nodes.push_back({{"node", node.name},
                     {"op", node.op},
                     {"start_us", node.start.avg()},
                     {"time_us", ToJson(node.duration)},
                     {"memory_bytes", node.memory.newest()},
                     {"times_called", node.times_called},
                     {"outputs", OutputsJson(node.outputs)}});
  }
  json types = json::array();
  for (const benchmark::TypeStats& type : benchmark.profile.Types()) {
    types.push_back({{"op", type.op},
                     {"nodes", type.nodes},
                     {"time_us", type.micros},
                     {"memory_bytes", type.memory},
                     {"times_called", type.times_called}});
  }
  return {{"runs", benchmark.profile.run_micros().count()},
          {"time_us", ToJson(benchmark.profile.run_micros())},
          {"memory_bytes", ToJson(benchmark.profile.run_bytes())},
          {"nodes", std::move(nodes)},
          {"types", std::move(types)}};
}

json FusionsJson(const std::vector<runtime::FusedNodes>& fused) {
  json list = json::array();
  for (const runtime::FusedNodes& taken : fused) {
    list.push_back({{"fusion", taken.fusion},
                    {"replacement", taken.replacement},
                    {"nodes", taken.nodes},
                    {"step", taken.step},
                    {"op", taken.op}});
  }
  return list;
}

json FlopsJson(const benchmark::FlopCount& count) {
  json ops = json::array();
  for (const benchmark::OpFlops& op : count.ops) {
    ops.push_back({{"op", op.op}, {"nodes", op.nodes}, {"flops", op.flops}});
  }
  json nodes = json::array();
  for (const benchmark::NodeFlops& node : count.nodes) {
    nodes.push_back(
        {{"node", node.name}, {"op", node.op}, {"flops", node.flops}});
  }
  return {{"total", count.flops},
          {"unknown_nodes", count.unknown_nodes},
          {"ops", std::move(ops)},
          {"nodes", std::move(nodes)}};
}

}  // namespace

Table MakeLatencyTable(const std::vector<ModelBenchmark>& benchmarks) {
  Table table({{"threads", "THREADS", Align::kRight},
               {"runs", "RUNS", Align::kRight},
               {"load_us", "LOAD", Align::kRight},
               {"first_us", "FIRST", Align::kRight},
               {"min_us", "MIN", Align::kRight},
               {"median_us", "MEDIAN", Align::kRight},
               {"mean_us", "MEAN", Align::kRight},
               {"mad_us", "SPREAD", Align::kRight},
               {"p90_us", "P90", Align::kRight},
               {"p99_us", "P99", Align::kRight},
               {"max_us", "MAX", Align::kRight},
               {"peak_memory_bytes", "MEMORY", Align::kRight},
               {"noisy", "NOISY"}});
  const auto time = [](double us) { return Cell(us, HumanMicroseconds(us)); };
  for (const ModelBenchmark& benchmark : benchmarks) {
    const v1::Measurement& m = benchmark.measurement;
    table.AddRow(
        {Cell::Integer(m.threads()), Cell::Integer(m.runs()), time(m.load_us()),
         time(m.first_us()), time(m.min_us()), time(m.median_us()),
         time(m.mean_us()), time(m.mad_us()), time(m.p90_us()),
         time(m.p99_us()), time(m.max_us()),
         m.peak_memory_bytes() > 0
             ? Cell(m.peak_memory_bytes(), HumanBytes(m.peak_memory_bytes()))
             : Cell(),
         Cell(m.noisy(), m.noisy() ? "noisy" : "no")});
  }
  return table;
}

std::string FlopsLines(const ModelBenchmark& benchmark) {
  std::string text =
      absl::StrCat("FLOPs estimate: ", CountText(benchmark.flops.flops));
  if (benchmark.flops.unknown_nodes > 0) {
    absl::StrAppend(&text, " (without ", benchmark.flops.unknown_nodes,
                    " nodes of unknown shape; --input_layer_shape may help)");
  }
  text.push_back('\n');
  if (benchmark.timed.avg() > 0) {
    absl::StrAppend(
        &text, "FLOPs/second: ",
        CountText(benchmark.flops.flops * 1e6 / benchmark.timed.avg()), "\n");
  }
  return text;
}

Table MakeFlopsTable(const benchmark::FlopCount& count) {
  Table table({{"op", "OP"},
               {"nodes", "NODES", Align::kRight},
               {"flops", "FLOPS", Align::kRight},
               {"percent", "SHARE", Align::kRight}});
  for (const benchmark::OpFlops& op : count.ops) {
    const double percent = count.flops > 0 ? op.flops / count.flops * 100 : 0;
    table.AddRow({Cell::Text(op.op), Cell::Integer(op.nodes),
                  Cell(op.flops, CountText(op.flops)),
                  Cell(percent, HumanPercent(percent))});
  }
  return table;
}

std::string FusionText(const std::vector<runtime::FusedNodes>& fused) {
  if (fused.empty()) return "\nNo fusion took a node.\n";
  Table table({{"fusion", "FUSION"}, {"op", "BECAME"}, {"nodes", "NODES"}});
  std::map<std::string, std::string> replacements;
  for (const runtime::FusedNodes& taken : fused) {
    table.AddRow({Cell::Text(taken.fusion), Cell::Text(taken.op),
                  Cell::Text(absl::StrJoin(taken.nodes, " "))});
    replacements[taken.fusion] = taken.replacement;
  }
  std::string text = absl::StrCat("\n", table.ToText(), "\n");
  for (const auto& [fusion, replacement] : replacements) {
    absl::StrAppend(&text, fusion, ": ", replacement, "\n");
  }
  return text;
}

std::string DeviceEstimate(const benchmark::FlopCount& count, double gflops) {
  const absl::Duration least = benchmark::LeastRunTime(count, gflops);
  const double seconds = absl::ToDoubleSeconds(least);
  if (seconds <= 0) {
    return "No operations are counted in this graph: there is no estimate for "
           "a device.\n";
  }
  return absl::StrFormat(
      "A device that does %g GFLOP/s needs at least %s for one run: at best "
      "%.3g runs a second.\n",
      gflops, HumanMicroseconds(seconds * 1e6), 1 / seconds);
}

std::string BenchmarksToJson(const std::vector<ModelBenchmark>& benchmarks,
                             std::optional<double> gflops) {
  json list = json::array();
  for (const ModelBenchmark& benchmark : benchmarks) {
    json object = json::parse(ProtoToJsonLine(benchmark.measurement), nullptr,
                              /*allow_exceptions=*/false);
    object["timings"] = {{"warmup_us", ToJson(benchmark.warmup)},
                         {"no_stats_us", ToJson(benchmark.timed)},
                         {"with_stats_us", ToJson(benchmark.traced)}};
    object["profile"] = ProfileJson(benchmark);
    object["flops"] = FlopsJson(benchmark.flops);
    if (!benchmark.fused_nodes.empty()) {
      object["fusions"] = FusionsJson(benchmark.fused_nodes);
    }
    if (gflops.has_value()) {
      object["device_estimate"] = {
          {"gflops", *gflops},
          {"least_us", absl::ToDoubleMicroseconds(
                           benchmark::LeastRunTime(benchmark.flops, *gflops))}};
    }
    list.push_back(std::move(object));
  }
  return list.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace optfarm::client_cli
