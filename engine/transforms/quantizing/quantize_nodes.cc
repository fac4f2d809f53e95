// quantize_nodes: makes a graph compute in 8 bits where it can. Weights are to
// be quantized before (quantize_weights); what becomes superfluous is left for
// strip_unused_nodes.

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/duplicate_nodes.h"
#include "engine/transforms/quantizing/quantize_passes.h"

namespace optfarm::transforms {
namespace {

absl::StatusOr<std::optional<FloatRange>> ReadRange(
    const TransformArguments& arguments, absl::string_view min,
    absl::string_view max) {
  if (!arguments.Has(min) && !arguments.Has(max)) return std::nullopt;
  if (!arguments.Has(min) || !arguments.Has(max)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "You must pass both ", min, " and ", max, " into quantize_nodes"));
  }
  const FloatRange range{arguments.Float(min), arguments.Float(max)};
  if (range.min >= range.max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", min, "' is ", range.min, ", not below '", max, "', ", range.max));
  }
  return range;
}

absl::StatusOr<QuantizeOptions> ReadOptions(
    const TransformArguments& arguments) {
  QuantizeOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.input_range,
                           ReadRange(arguments, "input_min", "input_max"));
  OPTFARM_ASSIGN_OR_RETURN(
      options.fallback_range,
      ReadRange(arguments, "fallback_min", "fallback_max"));
  if (options.fallback_range.has_value() && options.fallback_range->min > 0) {
    return absl::InvalidArgumentError(
        "'fallback_min' is above 0, which Requantize does not take");
  }
  for (const std::string& op : arguments.Strings("ignore_op")) {
    options.ignored_ops.insert(op);
  }
  for (const std::string& node : arguments.Strings("exclude_node")) {
    options.excluded_nodes.insert(node);
  }
  options.only_coded_weights = arguments.Bool("only_coded_weights");
  return options;
}

absl::Status QuantizeNodes(graph::Graph* graph, TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const QuantizeOptions options,
                           ReadOptions(context->arguments()));
  if (options.input_range.has_value()) {
    QuantizePlaceholders(*options.input_range, context, graph);
  }
  HoistFakeQuants(context, graph);
  ReplaceFakeQuants(context, graph);
  OPTFARM_RETURN_IF_ERROR(QuantizeOps(options, context, graph));
  MergeAdjacentRequantizes(graph);
  MergeDuplicates(*context, graph);
  DropRedundantQuantizations(graph);
  return absl::OkStatus();
}

}  // namespace

TransformDef QuantizeNodesTransform() {
  return {
      .name = "quantize_nodes",
      .summary = "Replaces float ops with 8-bit quantized ops.",
      .parameters =
          {{.name = "input_min",
            .type = ParameterType::kFloat,
            .help = "With input_max: placeholders are fed quantized values of "
                    "this range."},
           {.name = "input_max",
            .type = ParameterType::kFloat,
            .help = "Upper end of the placeholders' range."},
           {.name = "fallback_min",
            .type = ParameterType::kFloat,
            .help = "With fallback_max: every 32-bit result gets this range "
                    "instead of a dynamic one."},
           {.name = "fallback_max",
            .type = ParameterType::kFloat,
            .help = "Upper end of that range."},
           {.name = "ignore_op",
            .help = "Op whose nodes stay in float.",
            .repeated = true},
           {.name = "exclude_node",
            .help = "Name of a node that stays in float.",
            .repeated = true},
           {.name = "only_coded_weights",
            .type = ParameterType::kBool,
            .help = "Convolutions and matrix multiplies with too few weights "
                    "for quantize_weights stay in float.",
            .default_value = "false"}},
      .run = QuantizeNodes};
}

}  // namespace optfarm::transforms
