// Dropout as TensorFlow writes it: a random mask, and a division that makes up
// for what the mask takes away on average.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_DROPOUT_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_DROPOUT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"

namespace optfarm::transforms {

// The tensor that dropout is applied to, when `node` is the product of mask and
// scaled tensor:
//   x / keep * floor(keep + uniform)            until TensorFlow 1.12
//   x * (1 / (1 - rate)) * cast(uniform >= rate)   since
// nullopt when it is none.
// ERRORS: FailedPrecondition for a mask that is not made up for.
absl::StatusOr<std::optional<graph::Endpoint>> FindDropout(
    const graph::Graph& graph, graph::NodeId node);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_DROPOUT_H_
