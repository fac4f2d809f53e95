// Taking channels out of a layer, out of the constants of their flow, and out
// of the layers that read them.

#ifndef OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_REMOVAL_H_
#define OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_REMOVAL_H_

#include <vector>

#include "absl/status/status.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/transform.h"
#include "engine/transforms/pruning/channel_flow.h"

namespace optfarm::transforms {

// Cuts the channels that `is_removed` names out of all constants of the flow.
// ERRORS: InvalidArgument for a constant that cannot be decoded.
absl::Status RemoveChannels(const ChannelFlow& flow,
                            const std::vector<bool>& is_removed,
                            const TransformContext& context,
                            graph::Graph* graph);

// Adds `shifts` to the channels of `product`: to the bias that follows it, or
// as a bias of its own. No effect when they are all zero.
absl::Status ShiftChannels(graph::NodeId product,
                           const std::vector<double>& shifts,
                           const TransformContext& context,
                           graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_REMOVAL_H_
