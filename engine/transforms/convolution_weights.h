// Scaling the output channels of a convolution or matrix product by scaling
// its weights: the arithmetic that both batch norm folds share.

#ifndef OPTFARM_ENGINE_TRANSFORMS_CONVOLUTION_WEIGHTS_H_
#define OPTFARM_ENGINE_TRANSFORMS_CONVOLUTION_WEIGHTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/tensor.h"

namespace optfarm::transforms {

// The ops whose weights can be scaled, for patterns.
inline constexpr char kScalableOps[] = "Conv2D|MatMul|DepthwiseConv2dNative";
inline constexpr char kConvolutionOps[] = "Conv2D|DepthwiseConv2dNative";

// Number of output channels of `op` (a scalable op) with these weights.
// ERRORS: InvalidArgument for weights that are not float or of another rank.
absl::StatusOr<int64_t> OutputChannels(const graph::Node& op,
                                       const runtime::Tensor& weights);

// The weights with which output channel c of `op` becomes scale[c] times what
// it was. Products are rounded to float, as TensorFlow's are.
// ERRORS: InvalidArgument when scale.size() is not OutputChannels().
absl::StatusOr<runtime::Tensor> ScaledWeights(const graph::Node& op,
                                              const runtime::Tensor& weights,
                                              absl::Span<const float> scale);

// The node's data_format; "NHWC" when it has none.
std::string DataFormat(const graph::Node& node);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_CONVOLUTION_WEIGHTS_H_
