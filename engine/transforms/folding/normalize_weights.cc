// normalize_weights: gives every output channel of a convolution or matrix
// product weights of the same magnitude and multiplies the channels back to
// size afterwards. The graph computes the same numbers; but when the weights
// are then quantized with one range for the whole tensor, each channel uses all
// of it, which is what a range for each channel would do. Batch-norm folding
// makes channels differ a hundredfold, most of all in depthwise networks.
//
//   y = op(x, w)   becomes   y = op(x, w / s) * s,
//   s[c] = m[c] / max m,   m[c] = max(-min w[.., c], 128/127 max w[.., c])
//
// 128/127 because 256 quantized values have one more on one side of zero: a
// range of -128..127 steps makes 128 the zero point. In a range as far up as
// down zero would lie halfway between two quantized values, and the last bit of
// a quotient would decide which of them stands for it (formula 7 of
// docs/quantization.md).

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/nodes/weight_ranges.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

// Steps below zero over steps above.
constexpr float kUp = 128.0f / 127.0f;

// m of the formula above.
absl::StatusOr<std::vector<float>> ChannelMagnitudes(const graph::Node& op,
                                                     const FloatView& weights) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                           OutputChannels(op, weights.shape()));
  std::vector<float> largest(static_cast<size_t>(channels), 0.0f);
  OPTFARM_ASSIGN_OR_RETURN(const bool channels_first,
                           graph::GetBoolOr(op.def(), "transpose_b", false));
  const absl::Span<const float> values = weights.values();
  if (channels == 0) return largest;
  if (FindWeightRange(values).has_bad_value) {
    return absl::FailedPreconditionError(
        "its weights hold NaN or infinite values");
  }
  const size_t row = values.size() / largest.size();
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t channel = channels_first ? i / row : i % largest.size();
    const float magnitude = values[i] > 0 ? values[i] * kUp : -values[i];
    largest[channel] = std::max(largest[channel], magnitude);
  }
  return largest;
}

// s of the formula above; empty when all channels are alike already.
std::vector<float> ChannelScales(std::vector<float> magnitudes) {
  const float most = magnitudes.empty() ? 0.0f
                                        : *std::max_element(magnitudes.begin(),
                                                            magnitudes.end());
  bool differ = false;
  for (float& magnitude : magnitudes) {
    // A channel of zeros, or next to it, stays as it is.
    const float scale = magnitude / most;
    magnitude = scale > 1e-20f && std::isfinite(1.0f / scale) ? scale : 1.0f;
    differ |= magnitude != 1.0f;
  }
  return differ ? magnitudes : std::vector<float>();
}

// Puts a multiplication under the name of `op` behind it.
void MultiplyBack(NodeId op, const std::vector<float>& scales, Graph* graph) {
  const std::string name = graph->node(op).name();
  graph->Rename(op, absl::StrCat(name, "/normalized"));
  tensorflow::NodeDef scale_def = MakeConst(
      absl::StrCat(name, "/channel_scale"),
      Tensor::FromValues<float>({static_cast<int64_t>(scales.size())}, scales));
  scale_def.set_device(graph->node(op).device());
  const NodeId scale = graph->Add(std::move(scale_def), {}, {}, op);
  tensorflow::NodeDef mul_def = MakeNode(name, "Mul", graph->node(op));
  graph::SetType(&mul_def, "T", tensorflow::DT_FLOAT);
  const NodeId mul = graph->Add(std::move(mul_def), {{op, 0}, {scale, 0}});
  graph->RedirectUses({op, 0}, {mul, 0}, mul);
  graph->RedirectControlUses(op, mul);
}

// ERRORS: why this one stays as it is.
absl::Status Normalize(const Match& match, const TransformContext& context,
                       int64_t minimum, Graph* graph) {
  const NodeId op = match["op"], constant = match["weights"];
  const graph::Node& node = graph->node(op);
  const std::string shared = WhyShared(*graph, context, constant, op);
  if (!shared.empty()) return absl::FailedPreconditionError(shared);
  if (!graph::IsFloatMatMul(node.op()) && !graph::IsNhwc(node.def())) {
    return absl::FailedPreconditionError(
        "in data_format NCHW the channels are not the last dimension");
  }
  OPTFARM_ASSIGN_OR_RETURN(const FloatView weights,
                           FloatView::Of(graph->node(constant)));
  if (weights.shape().num_elements() < minimum) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(std::vector<float> magnitudes,
                           ChannelMagnitudes(node, weights));
  const std::vector<float> scales = ChannelScales(std::move(magnitudes));
  if (scales.empty()) return absl::OkStatus();
  std::vector<float> inverse(scales.size());
  std::transform(scales.begin(), scales.end(), inverse.begin(),
                 [](float s) { return 1.0f / s; });
  ScaleWeights(node, inverse, graph->mutable_node(constant));
  MultiplyBack(op, scales, graph);
  return absl::OkStatus();
}

absl::Status NormalizeWeights(Graph* graph, TransformContext* context) {
  const int64_t minimum = context->arguments().Int("minimum_size");
  const Pattern pattern =
      Inner(kScalableOps, "op", {Leaf("*", "x"), Leaf("Const", "weights")});
  return RewriteMatches(graph, pattern, [&](const Match& match) {
    const int before = graph->node_count();
    const std::string name = graph->node(match["op"]).name();
    const absl::Status status = Normalize(match, *context, minimum, graph);
    if (!status.ok()) context->Skip(name, status.message());
    if (graph->node_count() != before) context->CountChange();
    return absl::OkStatus();
  });
}

}  // namespace

TransformDef NormalizeWeightsTransform() {
  return {.name = "normalize_weights",
          .summary =
              "Scales the weights of every output channel to the same "
              "magnitude, and the outputs back, to reduce the quantization "
              "error.",
          .parameters = {{.name = "minimum_size",
                          .type = ParameterType::kInt,
                          .help = "Weights with fewer elements are not "
                                  "changed; use the value of "
                                  "quantize_weights.",
                          .default_value = "1024"}},
          .run = NormalizeWeights};
}

}  // namespace optfarm::transforms
