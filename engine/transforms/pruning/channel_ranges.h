// What each channel of a tensor can hold, whatever is fed to the graph: bounds
// that follow from constant weights, biases and activations. A channel whose
// bounds meet is the same number in every run.

#ifndef OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_RANGES_H_
#define OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_RANGES_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

struct ChannelRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();

  double width() const { return max - min; }
};

class ChannelRanges {
 public:
  // ERRORS: InvalidArgument for a cyclic graph.
  static absl::StatusOr<ChannelRanges> Find(const graph::Graph& graph,
                                            const graph::ShapeMap& shapes,
                                            const TransformContext& context);

  // The range of a position on the tensor's last axis; without bounds where
  // nothing is known.
  ChannelRange Of(graph::Endpoint tensor, int64_t position) const;

 private:
  // One for each position on the last axis, or one for all of them.
  absl::flat_hash_map<graph::NodeId, std::vector<ChannelRange>> ranges_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_RANGES_H_
