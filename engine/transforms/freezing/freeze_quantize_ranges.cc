// freeze_quantize_ranges: see freeze_quantize_ranges.h.

#include "engine/transforms/freezing/freeze_quantize_ranges.h"

#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/loop_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

absl::Status CheckLog(const RangeLog& log, const Graph& graph) {
  if (log.empty()) {
    return absl::InvalidArgumentError("the file holds no ranges");
  }
  const std::vector<NodeId> nodes = QuantizesWithRangeOfRun(graph);
  const std::set<NodeId> known(nodes.begin(), nodes.end());
  for (const auto& [name, ranges] : log) {
    if (known.count(graph.Find(name)) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the file has a range for '", name, "', which is no QuantizeV2 node ",
          "of the graph that finds its range in every run"));
    }
    for (const ObservedRange& range : ranges) {
      if (!std::isfinite(range.min) || !std::isfinite(range.max)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the observed range of node '", name, "' is ", range.min, " to ",
            range.max, "; a NaN or infinite value reached it"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Run(Graph* graph, TransformContext* context) {
  const TransformArguments& arguments = context->arguments();
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string path,
      context->ResolveFile(arguments.String("min_max_log_file")));
  OPTFARM_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  FreezeOptions options;
  options.min_percentile = arguments.Float("min_percentile");
  options.max_percentile = arguments.Float("max_percentile");
  OPTFARM_ASSIGN_OR_RETURN(
      const FreezeResult result,
      FreezeQuantizeRanges(graph, ParseRangeLog(text), options));
  context->CountChange(result.frozen);
  for (const std::string& node : result.left_dynamic) {
    context->Skip(node, "it has no record in the log; its range stays dynamic");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NodeId> QuantizesWithRangeOfRun(const Graph& graph) {
  const std::vector<bool> in_loops = NodesInLoops(graph);
  std::vector<NodeId> found;
  for (const NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (!in_loops[id] && IsQuantize(node, tensorflow::DT_QUINT8) &&
        node.inputs().size() == 3 &&
        graph::HasRole(graph.node(node.inputs()[1].node).op(),
                       graph::OpRole::kMin) &&
        graph::HasRole(graph.node(node.inputs()[2].node).op(),
                       graph::OpRole::kMax)) {
      found.push_back(id);
    }
  }
  return found;
}

absl::StatusOr<FreezeResult> FreezeQuantizeRanges(
    Graph* graph, const RangeLog& log, const FreezeOptions& options) {
  OPTFARM_RETURN_IF_ERROR(CheckPercentiles(options));
  OPTFARM_RETURN_IF_ERROR(CheckLog(log, *graph));
  FreezeResult result;
  for (const NodeId id : QuantizesWithRangeOfRun(*graph)) {
    const std::string name = graph->node(id).name();
    const auto found = log.find(name);
    if (found == log.end()) {
      result.left_dynamic.push_back(name);
      continue;
    }
    const ObservedRange range = RangeOfPercentiles(found->second, options);
    for (const auto& [input, suffix, value] :
         {std::tuple(1, "/frozen_min", range.min),
          std::tuple(2, "/frozen_max", range.max)}) {
      tensorflow::NodeDef def =
          MakeScalarConst(absl::StrCat(name, suffix), value);
      def.set_device(graph->node(id).device());
      graph->SetInput(id, input, {graph->Add(std::move(def), {}, {}, id), 0});
    }
    ++result.frozen;
  }
  return result;
}

TransformDef FreezeQuantizeRangesTransform() {
  return {
      .name = "freeze_quantize_ranges",
      .summary =
          "Replaces the dynamic ranges of float tensors that are quantized "
          "with observed ranges.",
      .parameters =
          {{.name = "min_max_log_file",
            .help = "File of observed ranges, in the format that "
                    "freeze_requantization_ranges reads.",
            .required = true},
           {.name = "min_percentile",
            .type = ParameterType::kFloat,
            .help = "Percent of the observed minima that count as outliers.",
            .default_value = "0"},
           {.name = "max_percentile",
            .type = ParameterType::kFloat,
            .help = "Percent of the observed maxima that count as outliers.",
            .default_value = "0"}},
      .run = Run};
}

}  // namespace optfarm::transforms
