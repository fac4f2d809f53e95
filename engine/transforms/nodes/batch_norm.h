// A batch norm with constant parameters as a factor and an offset per channel.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_BATCH_NORM_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_BATCH_NORM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"

namespace optfarm::transforms {

// The ops that ReadBatchNorm understands, for patterns.
inline constexpr char kBatchNormOps[] =
    "BatchNormWithGlobalNormalization|FusedBatchNorm|FusedBatchNormV2|"
    "FusedBatchNormV3";

// output = input * scale[c] + offset[c], with
//   scale = 1 / sqrt(variance + epsilon) [* gamma], offset = beta - mean *
//   scale
// in float.
struct BatchNorm {
  std::vector<float> scale;
  std::vector<float> offset;
};

// Reads the constant inputs 1 to 4 of a batch norm node.
// ERRORS: FailedPrecondition when the node trains (its statistics come from the
// data), an output besides the first is used, or a parameter is not constant;
// InvalidArgument for parameters that are not float vectors of one length.
absl::StatusOr<BatchNorm> ReadBatchNorm(const graph::Graph& graph,
                                        graph::NodeId node);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_BATCH_NORM_H_
