// Scaling the output channels of a convolution or matrix product by scaling
// its weights: the arithmetic that both batch norm folds share.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_CONVOLUTION_WEIGHTS_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_CONVOLUTION_WEIGHTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::transforms {

// The ops whose weights can be scaled, for patterns.
inline constexpr char kScalableOps[] = "Conv2D|MatMul|DepthwiseConv2dNative";
inline constexpr char kConvolutionOps[] = "Conv2D|DepthwiseConv2dNative";

// Whether `op` is a MatMul whose weights have an output channel in each row.
bool HasTransposedWeights(const graph::Node& op);

// Number of output channels of `op` (a scalable op) with weights of this shape.
// ERRORS: InvalidArgument for weights of another rank.
absl::StatusOr<int64_t> OutputChannels(const graph::Node& op,
                                       const runtime::Shape& weights);

// Whether ScaleWeights can scale the Const `weights` of `op`.
// ERRORS: InvalidArgument when they are not float, or not of as many output
// channels as there are factors.
absl::Status CheckScale(const graph::Node& op, const graph::Node& weights,
                        size_t factors);

// Lets output channel c of `op` become scale[c] times what it was. Products are
// rounded to float, as TensorFlow's are. REQUIRES: CheckScale.
void ScaleWeights(const graph::Node& op, absl::Span<const float> scale,
                  graph::Node* weights);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_CONVOLUTION_WEIGHTS_H_
