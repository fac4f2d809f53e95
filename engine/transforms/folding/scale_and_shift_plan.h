// What fold_scale_and_shift is going to do at one place, decided before
// anything is changed.

#ifndef OPTFARM_ENGINE_TRANSFORMS_FOLDING_SCALE_AND_SHIFT_PLAN_H_
#define OPTFARM_ENGINE_TRANSFORMS_FOLDING_SCALE_AND_SHIFT_PLAN_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/transform.h"
#include "engine/transforms/nodes/channel_affine.h"

namespace optfarm::transforms {

// A convolution or matrix product, what it is to become, and who reads it.
struct ScaledProduct {
  graph::NodeId product = graph::kNoNode;
  // One for each output channel.
  std::vector<float> scale;
  std::vector<float> shift;
  // The concatenation, BatchToSpaceND or Transpose that reads it, and at which
  // input; kNoNode when it stands directly below the head.
  graph::NodeId reader = graph::kNoNode;
  int input = 0;
};

struct ScaleAndShiftPlan {
  std::vector<ScaledProduct> products;
  // The operations that go, the head first.
  std::vector<graph::NodeId> removed;
  // The topmost of what stays.
  graph::NodeId top = graph::kNoNode;
  // Those of `removed` that do more than add.
  int scalings = 0;
  // Inputs (node and input number) of concatenations that are to read another
  // concatenation directly.
  std::vector<std::pair<graph::Endpoint, graph::NodeId>> rewired;
};

// OWNERSHIP: graph and context outlive the planner. THREADS: one at a time.
class ScaleAndShiftPlanner {
 public:
  ScaleAndShiftPlanner(const graph::Graph& graph,
                       const TransformContext& context)
      : graph_(graph), context_(context) {}

  // REQUIRES: ReadAffineNode succeeds for `head`.
  // ERRORS: why the operation at `head` cannot be folded; NotFound when what
  // stands below it takes no factors at all.
  absl::StatusOr<ScaleAndShiftPlan> Make(graph::NodeId head);

  // The operations that the last plan looked at, when it failed.
  const std::vector<graph::NodeId>& visited() const { return plan_.removed; }

 private:
  absl::Status CheckExclusive(graph::NodeId node, graph::NodeId reader) const;
  // Takes `outer` down to the products below `node`. `reader` is what stays
  // above it, `depth` counts concatenations and the like on the way.
  absl::Status Descend(graph::NodeId node, graph::NodeId reader, int input,
                       ChannelAffine outer, int depth);
  absl::Status AddProduct(graph::NodeId product, graph::NodeId reader,
                          int input, const ChannelAffine& affine);
  absl::Status DescendConcat(graph::NodeId concat, const ChannelAffine& outer,
                             int depth);
  absl::Status DescendBatchToSpace(graph::NodeId space,
                                   const ChannelAffine& outer, int depth);

  absl::Status DescendTranspose(graph::NodeId transpose, ChannelAffine outer,
                                int depth);

  graph::Endpoint DataOf(graph::NodeId node, const AffineNode& affine) const;
  // Output channels of what stands below `node`.
  absl::StatusOr<int64_t> Channels(graph::NodeId node, int depth);
  // The first product below, for what it knows of the layout; nullptr when
  // there is none. Adds what stands above it to `path`.
  const graph::Node* ProductBelow(
      graph::NodeId node, std::vector<graph::NodeId>* path = nullptr) const;
  bool HasTranspose(const std::vector<graph::NodeId>& path) const;
  absl::StatusOr<bool> IsAlongChannels(const graph::Node& concat) const;

  const graph::Graph& graph_;
  const TransformContext& context_;
  ScaleAndShiftPlan plan_;
  // Of concatenations, so that none is counted twice.
  absl::flat_hash_map<graph::NodeId, int64_t> channels_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_FOLDING_SCALE_AND_SHIFT_PLAN_H_
