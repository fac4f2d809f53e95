// freeze_requantization_ranges: see freeze_ranges.h.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/freezing/freeze_ranges.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

bool FindsRange(const graph::Node& node) {
  return graph::IsRequantizationRange(node.op());
}

absl::Status CheckLog(const RangeLog& log, const Graph& graph) {
  if (log.empty()) {
    return absl::InvalidArgumentError(
        "No min/max range logs were found in the log file");
  }
  std::vector<std::string> missing;
  for (const auto& [name, ranges] : log) {
    const NodeId id = graph.Find(name);
    if (id == graph::kNoNode) {
      missing.push_back(name);
      continue;
    }
    if (!FindsRange(graph.node(id))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Node is expected to be a RequantizationRange op: ", name,
          ", but is: ", graph.node(id).op()));
    }
    for (const graph::Use& use : graph.node(id).uses()) {
      if (use.port > 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "node '", graph.node(use.consumer).name(), "' reads output ",
            use.port, " of '", name, "', which has two outputs"));
      }
    }
    for (const ObservedRange& range : ranges) {
      if (!std::isfinite(range.min) || !std::isfinite(range.max)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the observed range of node '", name, "' is ", range.min, " to ",
            range.max, "; a NaN or infinite value reached it"));
      }
    }
  }
  if (missing.empty()) return absl::OkStatus();
  const size_t shown = std::min<size_t>(missing.size(), 5);
  return absl::InvalidArgumentError(absl::StrCat(
      "Nodes were found in the log file that aren't present in the graph: ",
      absl::StrJoin(missing.begin(), missing.begin() + shown, ", "),
      missing.size() > shown ? ", ..." : ""));
}

void Freeze(NodeId id, const ObservedRange& range, Graph* graph) {
  const graph::Node& node = graph->node(id);
  const std::vector<NodeId> controls(node.control_inputs().begin(),
                                     node.control_inputs().end());
  const NodeId min = graph->Add(
      MakeScalarConst(absl::StrCat(node.name(), "/frozen_min"), range.min), {},
      controls, id);
  const NodeId max = graph->Add(
      MakeScalarConst(absl::StrCat(node.name(), "/frozen_max"), range.max), {},
      controls, id);
  graph->RedirectUses({id, 0}, {min, 0});
  graph->RedirectUses({id, 1}, {max, 0});
  // What waited for the range waits for what it was computed from.
  const bool has_source = !node.inputs().empty() && node.inputs()[0].node != id;
  graph->RedirectControlUses(id, has_source ? node.inputs()[0].node : min);
  graph->Remove(id);
}

absl::Status FreezeRequantizationRanges(Graph* graph,
                                        TransformContext* context) {
  const TransformArguments& arguments = context->arguments();
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string path,
      context->ResolveFile(arguments.String("min_max_log_file")));
  OPTFARM_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  FreezeOptions options;
  options.min_percentile = arguments.Float("min_percentile");
  options.max_percentile = arguments.Float("max_percentile");
  OPTFARM_ASSIGN_OR_RETURN(const FreezeResult result,
                           FreezeRanges(graph, ParseRangeLog(text), options));
  context->CountChange(result.frozen);
  for (const std::string& node : result.left_dynamic) {
    context->Skip(node, "it has no record in the log; its range stays dynamic");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPercentiles(const FreezeOptions& options) {
  for (const auto& [name, value] :
       {std::pair("min_percentile", options.min_percentile),
        std::pair("max_percentile", options.max_percentile)}) {
    if (!(value >= 0 && value < 100)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", name, "' is ", value, ", not at least 0 and below 100"));
    }
  }
  return absl::OkStatus();
}

ObservedRange RangeOfPercentiles(absl::Span<const ObservedRange> ranges,
                                 const FreezeOptions& options) {
  std::vector<float> mins, maxs;
  for (const ObservedRange& range : ranges) {
    mins.push_back(range.min);
    maxs.push_back(range.max);
  }
  std::sort(mins.begin(), mins.end());
  std::sort(maxs.begin(), maxs.end());
  // In float, as the reference computes the indices.
  const float count = static_cast<float>(ranges.size());
  const int64_t last = static_cast<int64_t>(ranges.size()) - 1;
  const int64_t min_index =
      std::lround(count * (options.min_percentile / 100.0f));
  const int64_t max_index =
      std::lround(count * (1.0f - options.max_percentile / 100.0f));
  return {mins[std::clamp<int64_t>(min_index, 0, last)],
          maxs[std::clamp<int64_t>(max_index, 0, last)]};
}

absl::StatusOr<FreezeResult> FreezeRanges(Graph* graph, const RangeLog& log,
                                          const FreezeOptions& options) {
  OPTFARM_RETURN_IF_ERROR(CheckPercentiles(options));
  OPTFARM_RETURN_IF_ERROR(CheckLog(log, *graph));
  FreezeResult result;
  for (NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (!FindsRange(node)) continue;
    const auto found = log.find(node.name());
    if (found == log.end()) {
      result.left_dynamic.push_back(node.name());
      continue;
    }
    Freeze(id, RangeOfPercentiles(found->second, options), graph);
    ++result.frozen;
  }
  return result;
}

TransformDef FreezeRequantizationRangesTransform() {
  return {
      .name = "freeze_requantization_ranges",
      .summary = "Replaces dynamic ranges with observed ranges.",
      .parameters =
          {{.name = "min_max_log_file",
            .help = "File with the log of a graph prepared by insert_logging.",
            .required = true},
           {.name = "min_percentile",
            .type = ParameterType::kFloat,
            .help = "Percent of the observed minima that count as outliers.",
            .default_value = "5"},
           {.name = "max_percentile",
            .type = ParameterType::kFloat,
            .help = "Percent of the observed maxima that count as outliers.",
            .default_value = "5"}},
      .run = FreezeRequantizationRanges};
}

}  // namespace optfarm::transforms
