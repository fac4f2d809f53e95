// What one 8-bit op does at once: a product with constant weights, the bias
// behind it and the activation behind that; or a sum of two tensors with its
// activation; or an op between such that has a form on quantized values.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_GROUPS_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_GROUPS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

enum class GroupKind {
  kProduct,
  kSum,
  // Keeps the range, and has an op for quantized values with their range.
  kRangePreserving,
  // Moves quantized values as it moves bytes.
  kDataMovement,
  // A mean over height and width.
  kMean,
  // Times a constant, plus a constant, for each channel.
  kChannels,
  // Times one positive constant: other ranges for the same quantized values.
  kScaled,
};

struct LayerGroup {
  GroupKind kind = GroupKind::kProduct;
  // The product, the Add, or the op itself.
  graph::NodeId head = graph::kNoNode;
  // Of a product, kChannels and kScaled: the constant that is multiplied with;
  // kNoNode for ones.
  graph::NodeId weights = graph::kNoNode;
  // Of a product and kChannels: an addition of a constant behind the head, and
  // the constant that is added, there or by the head; kNoNode for none.
  graph::NodeId bias_add = graph::kNoNode;
  graph::NodeId bias = graph::kNoNode;
  // A Relu or Relu6; kNoNode for none.
  graph::NodeId activation = graph::kNoNode;
  // Of a product and kChannels: a FakeQuantWithMinMaxVars that IsTrainedRange;
  // kNoNode for none.
  graph::NodeId trained_range = graph::kNoNode;
  // Of a product: it runs inside a loop, and what belongs to it has to.
  bool is_in_loop = false;

  // The node whose value the group computes.
  graph::NodeId last() const {
    if (trained_range != graph::kNoNode) return trained_range;
    if (activation != graph::kNoNode) return activation;
    return bias_add != graph::kNoNode ? bias_add : head;
  }
};

// Nodes that are not to become part of a group.
struct KeptNodes {
  absl::flat_hash_set<std::string> ops;
  absl::flat_hash_set<std::string> names;
};

// The groups of a graph, in the order of computation. Products that stay in
// float are listed in the context's report, with the reason. Anything else is a
// group when all tensors it reads come out of groups and a product takes, in
// the end, what it gives.
// ERRORS: those of shape inference; InvalidArgument for a cyclic graph.
absl::StatusOr<std::vector<LayerGroup>> FindLayerGroups(
    const graph::Graph& graph, const KeptNodes& kept,
    TransformContext* context);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_GROUPS_H_
