// Steps that multiply each channel by a constant and add another: biases, sums
// and products with constants, batch norms of a trained net. A fusion applies
// them in the kernel that computes their input.
//
// engine/transforms/nodes/channel_affine.h reads the same ops by the same roles
// (graph/ops/op_row.h), and there are two readers for a reason:
//   - The transform rewrites a model once. It works in double precision, in
//   both
//     data formats, with divisions too, and says what is in its way.
//   - A fusion must not change an answer. It keeps float as the steps do,
//   leaves
//     divisions alone (x * (1 / c) rounds differently from x / c), and reads
//     channels only where they are last. Whatever does not fit is not fused.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_CHANNEL_AFFINE_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_CHANNEL_AFFINE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/runtime/plan/plan_editor.h"

namespace optfarm::runtime {

// x * scale + bias, channel by channel.
struct ChannelAffine {
  // Empty: all one.
  std::vector<float> scale;
  // Empty: all zero.
  std::vector<float> bias;
};

// What a tensor is that the node reads: `rank` dimensions, the last of which
// are the channels.
struct ChannelLayout {
  int64_t channels = 0;
  int rank = 0;
};

// What `step` does to the value in `slot`; nothing when it does something else,
// or something that is not constant.
std::optional<ChannelAffine> ReadChannelAffine(const PlanEditor& plan,
                                               const Step& step, int slot,
                                               const ChannelLayout& layout);

// `first`, then `second`.
ChannelAffine Compose(const ChannelAffine& first, const ChannelAffine& second);

// Whether the step is a node whose attribute T is float.
bool ComputesFloats(const Step& step);
// Whether the step is such a node of this op.
bool IsFloatNode(const Step* step, const char* op);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_CHANNEL_AFFINE_H_
