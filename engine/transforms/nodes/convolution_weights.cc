#include "engine/transforms/nodes/convolution_weights.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {

bool HasTransposedWeights(const graph::Node& op) {
  return graph::IsFloatMatMul(op.op()) &&
         graph::GetBoolOr(op.def(), "transpose_b", false).value_or(false);
}

absl::StatusOr<int64_t> OutputChannels(const graph::Node& op,
                                       const runtime::Shape& weights) {
  const graph::LayerProduct product = graph::FloatProductOf(op.op());
  const bool is_matrix = product == graph::LayerProduct::kMatrix;
  const int rank = is_matrix ? 2 : 4;
  if (weights.rank() != rank) {
    return absl::InvalidArgumentError(absl::StrCat("the weights are of shape ",
                                                   weights.ToString(),
                                                   ", not of rank ", rank));
  }
  if (is_matrix) return weights.dim(HasTransposedWeights(op) ? 0 : 1);
  if (product == graph::LayerProduct::kConvolution) return weights.dim(3);
  return weights.dim(2) * weights.dim(3);
}

absl::Status CheckScale(const graph::Node& op, const graph::Node& weights,
                        size_t factors) {
  OPTFARM_ASSIGN_OR_RETURN(const FloatView view, FloatView::Of(weights));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                           OutputChannels(op, view.shape()));
  if (channels == static_cast<int64_t>(factors)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "there are ", factors, " factors for ", channels, " output channels"));
}

void ScaleWeights(const graph::Node& op, absl::Span<const float> scale,
                  graph::Node* weights) {
  const absl::Span<float> values = MutableFloats(weights);
  if (values.empty()) return;
  if (HasTransposedWeights(op)) {
    // Each channel is a row.
    const size_t row = values.size() / scale.size();
    for (size_t c = 0; c < scale.size(); ++c) {
      for (float& value : values.subspan(c * row, row)) value *= scale[c];
    }
    return;
  }
  for (size_t at = 0; at < values.size(); at += scale.size()) {
    float* const patch = values.data() + at;
    for (size_t c = 0; c < scale.size(); ++c) patch[c] *= scale[c];
  }
}

}  // namespace optfarm::transforms
