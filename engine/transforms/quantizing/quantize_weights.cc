// quantize_weights: stores large float constants as 8-bit values with a range,
// followed by a Dequantize under the old name. The graph computes in float as
// before; the file has a quarter of its size.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_proto.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/weight_ranges.h"
#include "engine/transforms/quantizing/clipped_range.h"
#include "engine/transforms/quantizing/value_histogram.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

// A range that includes 0 and is not empty.
WeightRange QuantizedRange(WeightRange range) {
  range.min = std::min(range.min, 0.0f);
  range.max = std::max(range.max, 0.0f);
  if (range.min == range.max) {
    if (std::abs(range.min) < 1e-6f) {
      range.max = range.min + 1.0f;
    } else {
      range.max = range.min > 0 ? 2.0f * range.min : range.min / 2.0f;
    }
  }
  return range;
}

enum class RangeRule { kMinMax, kLeastError, kPercentile };

// How the range of a tensor's values is taken.
struct RangeOptions {
  RangeRule rule = RangeRule::kMinMax;
  // UNITS: percent of the values left out on each side.
  double percentile = 0;
};

absl::StatusOr<RangeOptions> ReadRangeOptions(
    const TransformArguments& arguments) {
  RangeOptions options;
  const std::string rule = arguments.String("range");
  if (rule == "mse") {
    options.rule = RangeRule::kLeastError;
  } else if (rule == "percentile") {
    options.rule = RangeRule::kPercentile;
  } else if (rule != "min_max") {
    return absl::InvalidArgumentError(absl::StrCat(
        "'range' is '", rule, "'; give min_max, mse or percentile"));
  }
  options.percentile = arguments.Float("percentile");
  if (!(options.percentile >= 0 && options.percentile < 50)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'percentile' is ", options.percentile,
                     ", not at least 0 and below 50"));
  }
  return options;
}

// The range that the rule gives, within `found`.
WeightRange ChooseRange(const RangeOptions& options,
                        absl::Span<const float> values,
                        const WeightRange& found) {
  if (options.rule == RangeRule::kMinMax) return found;
  ValueHistogram histogram;
  histogram.Add(values);
  const ObservedRange chosen =
      options.rule == RangeRule::kLeastError
          ? LeastErrorRange(histogram)
          : PercentileRange(histogram, options.percentile);
  // Nothing would be left of the values.
  if (chosen.min == chosen.max) return found;
  WeightRange range = found;
  range.min = chosen.min;
  range.max = chosen.max;
  return range;
}

// The double next to 0.5 towards zero: adding it before cutting the fraction
// off rounds halves away from zero and nothing else up.
constexpr double kAlmostHalf = 0.49999999999999994;

// Formula 2 of docs/quantization.md with 256 quantized values:
// quantized value = round(v * 255 / (max - min)) - round(min * 255 / (max -
// min)), within 0..255, in double, halves away from zero.
void WriteQuantized(absl::Span<const float> values, const WeightRange& range,
                    uint8_t* quantized) {
  const double scale =
      255.0 / (static_cast<double>(range.max) - static_cast<double>(range.min));
  const auto lowest = static_cast<int32_t>(std::round(range.min * scale));
  const float* const from = values.data();
  for (size_t i = 0; i < values.size(); ++i) {
    // The range holds 0 and at least a bin of a histogram of all values, so
    // that products are within +-256 times 4096 and whole numbers do for what
    // follows.
    const double scaled = from[i] * scale;
    const int32_t q =
        static_cast<int32_t>(scaled + std::copysign(kAlmostHalf, scaled)) -
        lowest;
    quantized[i] = static_cast<uint8_t>(q < 0 ? 0 : q > 255 ? 255 : q);
  }
}

// A Const of the quantized values. They are written where they stay.
tensorflow::NodeDef MakeQuantizedConst(absl::string_view name,
                                       const FloatView& weights,
                                       const WeightRange& range) {
  tensorflow::NodeDef def;
  def.set_name(std::string(name));
  def.set_op("Const");
  graph::SetType(&def, "dtype", tensorflow::DT_QUINT8);
  tensorflow::TensorProto* proto =
      (*def.mutable_attr())["value"].mutable_tensor();
  proto->set_dtype(tensorflow::DT_QUINT8);
  tensorflow::TensorShapeProto* shape = proto->mutable_tensor_shape();
  for (int64_t dim : weights.shape().dims()) shape->add_dim()->set_size(dim);
  std::string* content = proto->mutable_tensor_content();
  content->resize(weights.values().size());
  WriteQuantized(weights.values(), range,
                 reinterpret_cast<uint8_t*>(content->data()));
  return def;
}

// Turns the Const into a Dequantize of three new ones. They wait for what the
// Const waited for, so that they run in the same branch or loop.
void ReplaceByQuantized(NodeId id, const FloatView& weights,
                        const WeightRange& range, Graph* graph) {
  const std::string name = graph->node(id).name();
  const std::string device = graph->node(id).device();
  const std::vector<NodeId> controls(graph->node(id).control_inputs().begin(),
                                     graph->node(id).control_inputs().end());
  std::vector<graph::Endpoint> inputs;
  const auto add = [&](tensorflow::NodeDef def) {
    def.set_device(device);
    inputs.push_back({graph->Add(std::move(def), {}, controls, id), 0});
  };
  add(MakeQuantizedConst(absl::StrCat(name, "_quantized_const"), weights,
                         range));
  add(MakeScalarConst(absl::StrCat(name, "_quantized_min"), range.min));
  add(MakeScalarConst(absl::StrCat(name, "_quantized_max"), range.max));
  tensorflow::NodeDef* def = graph->mutable_node(id)->mutable_def();
  def->set_op("Dequantize");
  def->clear_attr();
  graph::SetType(def, "T", tensorflow::DT_QUINT8);
  graph::SetString(def, "mode", "MIN_FIRST");
  graph->ClearControlInputs(id);
  graph->SetInputs(id, inputs);
}

// Whether an op on quantized values reads the node, perhaps inside a loop: as
// its bias, or as a range for each channel, which are float by definition.
bool BelongsToQuantized(const Graph& graph, const graph::Node& node) {
  const auto is_for_quantized = [&](const graph::Use& use) {
    return absl::StartsWith(graph.node(use.consumer).op(), "Quantized");
  };
  return std::any_of(
      node.uses().begin(), node.uses().end(), [&](const graph::Use& use) {
        const graph::Node& reader = graph.node(use.consumer);
        return is_for_quantized(use) ||
               (graph::IsEnter(reader.op()) &&
                std::any_of(reader.uses().begin(), reader.uses().end(),
                            is_for_quantized));
      });
}

// Whether the tensor is float and large enough, from its declaration alone.
absl::StatusOr<bool> IsLargeFloat(const graph::Node& node, int64_t minimum) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                           graph::GetTensor(node.def(), "value"));
  if (proto->dtype() != tensorflow::DT_FLOAT) return false;
  OPTFARM_RETURN_IF_ERROR(graph::CheckTensorProto(*proto));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t elements,
                           graph::ElementCount(proto->tensor_shape()));
  return elements > 0 && elements >= minimum;
}

absl::Status QuantizeWeights(Graph* graph, TransformContext* context) {
  const TransformArguments& arguments = context->arguments();
  const int64_t minimum = arguments.Int("minimum_size");
  if (minimum < 0) {
    // TensorFlow compares without a sign: no constant is large enough.
    context->Warn("nothing is quantized, because minimum_size is negative");
    return absl::OkStatus();
  }
  const std::vector<std::string> ops = arguments.Strings("ignore_op");
  const absl::flat_hash_set<std::string> ignored_ops(ops.begin(), ops.end());
  const std::vector<std::string> nodes = arguments.Strings("exclude_node");
  const absl::flat_hash_set<std::string> excluded(nodes.begin(), nodes.end());
  OPTFARM_ASSIGN_OR_RETURN(const RangeOptions options,
                           ReadRangeOptions(arguments));
  for (NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (!IsConst(node)) continue;
    const absl::StatusOr<bool> is_large = IsLargeFloat(node, minimum);
    if (!is_large.ok()) {
      return Annotate(is_large.status(),
                      absl::StrCat("Const node '", node.name(), "'"));
    }
    if (!*is_large || BelongsToQuantized(*graph, node) ||
        excluded.contains(node.name()) ||
        std::any_of(
            node.uses().begin(), node.uses().end(), [&](const graph::Use& use) {
              return ignored_ops.contains(graph->node(use.consumer).op());
            })) {
      continue;
    }
    OPTFARM_ASSIGN_OR_RETURN(const FloatView weights, FloatView::Of(node));
    const WeightRange found = FindWeightRange(weights.values());
    if (found.has_bad_value) {
      context->Skip(node.name(), "it holds NaN or infinite values");
      context->Warn(absl::StrCat("the constant '", node.name(),
                                 "' holds NaN or infinite values"));
      continue;
    }
    const WeightRange range = ChooseRange(options, weights.values(), found);
    ReplaceByQuantized(id, weights, QuantizedRange(range), graph);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef QuantizeWeightsTransform() {
  return {
      .name = "quantize_weights",
      .summary =
          "Stores large float constants as 8-bit quantized values, a quarter "
          "of their size; the graph still computes in float.",
      .parameters =
          {{.name = "minimum_size",
            .type = ParameterType::kInt,
            .help = "Constants with fewer elements are not changed; negative: "
                    "none is changed.",
            .default_value = "1024"},
           {.name = "ignore_op",
            .help = "Constants that a node of this op reads are not changed.",
            .repeated = true},
           {.name = "exclude_node",
            .help = "Name of a constant that is not changed.",
            .repeated = true},
           {.name = "range",
            .help = "min_max: all values. mse: minimizes the mean squared "
                    "error. percentile: all values but `percentile` percent "
                    "on each side.",
            .default_value = "min_max"},
           {.name = "percentile",
            .type = ParameterType::kFloat,
            .help = "Percent of the values to clip on each side.",
            .default_value = "0.01"}},
      .run = QuantizeWeights};
}

}  // namespace optfarm::transforms
