#include "engine/transforms/convolution_weights.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::transforms {
namespace {

using runtime::Tensor;

bool IsTransposed(const graph::Node& op) {
  return op.op() == "MatMul" &&
         graph::GetBoolOr(op.def(), "transpose_b", false).value_or(false);
}

}  // namespace

std::string DataFormat(const graph::Node& node) {
  return graph::GetStringOr(node.def(), "data_format", "NHWC").value_or("NHWC");
}

absl::StatusOr<int64_t> OutputChannels(const graph::Node& op,
                                       const Tensor& weights) {
  const int rank = op.op() == "MatMul" ? 2 : 4;
  if (weights.dtype() != tensorflow::DT_FLOAT || weights.rank() != rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the weights are ", graph::DataTypeName(weights.dtype()), " ",
        weights.shape().ToString(), ", not float of rank ", rank));
  }
  if (op.op() == "MatMul") return weights.dim(IsTransposed(op) ? 0 : 1);
  if (op.op() == "Conv2D") return weights.dim(3);
  return weights.dim(2) * weights.dim(3);
}

absl::StatusOr<Tensor> ScaledWeights(const graph::Node& op,
                                     const Tensor& weights,
                                     absl::Span<const float> scale) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels, OutputChannels(op, weights));
  if (channels != static_cast<int64_t>(scale.size())) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", scale.size(),
                                                   " factors for ", channels,
                                                   " output channels"));
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor scaled,
                           Tensor::Allocate(weights.dtype(), weights.shape()));
  const absl::Span<const float> from = weights.flat<float>();
  const absl::Span<float> to = scaled.flat<float>();
  // Channels vary fastest, except in transposed weights, where each is a row.
  const size_t run = IsTransposed(op) ? weights.dim(1) : 1;
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = from[i] * scale[i / run % scale.size()];
  }
  return scaled;
}

}  // namespace optfarm::transforms
