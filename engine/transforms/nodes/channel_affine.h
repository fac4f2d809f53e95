// Nodes that multiply each channel by a constant and add another: what batch
// norms, biases and normalizations come down to once a graph is frozen. A
// transform folds them into weights.
//
// engine/runtime/fusion/channel_affine.h reads the same ops by the same roles
// for the kernels of a session, under stricter rules: a fusion must not change
// an answer, whereas a transform may. Its header lists the differences.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_CHANNEL_AFFINE_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_CHANNEL_AFFINE_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"

namespace optfarm::transforms {

// y[c] = scale[c] * x[c] + shift[c]
struct ChannelAffine {
  // One number for each channel, or one for all of them.
  std::vector<double> scale = {1};
  std::vector<double> shift = {0};
  // The dimension of the channels, counted from the last (0: data_format NHWC,
  // 2: NCHW); -1 where one number stands for all channels.
  int channel_axis = -1;
  // Dimensions of the constants: the data must have at least as many.
  int rank = 0;
  // Whether the node does more than add.
  bool scales = false;

  // Lets this come after `inner`.
  // ERRORS: InvalidArgument when the two do not have the same channels.
  absl::Status ComposeWith(const ChannelAffine& inner);
  // The part for channels begin .. begin + count of a concatenation.
  ChannelAffine Slice(size_t begin, size_t count) const;
};

// A node of this kind, and which of its inputs is x.
struct AffineNode {
  ChannelAffine affine;
  int data_input = 0;
};

// Reads sums, differences, products, quotients and biases with a constant, and
// batch norms whose parameters are constant. nullopt for every other node.
// ERRORS: why a batch norm, or a division by zero, cannot be read so.
absl::StatusOr<std::optional<AffineNode>> ReadAffineNode(
    const graph::Graph& graph, graph::NodeId id);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_CHANNEL_AFFINE_H_
