// What one 8-bit op does at once: a product with constant weights, the bias
// behind it and the activation behind that; or a sum of two tensors with its
// activation; or an op that only moves numbers.

#ifndef OPTFARM_ENGINE_TRANSFORMS_LAYER_GROUPS_H_
#define OPTFARM_ENGINE_TRANSFORMS_LAYER_GROUPS_H_

#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/transform.h"

namespace optfarm::transforms {

enum class GroupKind { kProduct, kSum, kPassing };

struct LayerGroup {
  GroupKind kind = GroupKind::kProduct;
  // The product, the Add, or the op itself.
  graph::NodeId head = graph::kNoNode;
  // Of a product: an addition of a constant, kNoNode for none, and that
  // constant.
  graph::NodeId bias_add = graph::kNoNode;
  graph::NodeId bias = graph::kNoNode;
  // A Relu or Relu6; kNoNode for none.
  graph::NodeId activation = graph::kNoNode;
  // Of a product: a FakeQuantWithMinMaxVars that IsTrainedRange; kNoNode for
  // none.
  graph::NodeId trained_range = graph::kNoNode;

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
// float are listed in the context's report, with the reason. A sum or a passing
// op is a group when all tensors it reads come out of groups and a product
// takes, in the end, what it gives.
// ERRORS: those of shape inference; InvalidArgument for a cyclic graph.
absl::StatusOr<std::vector<LayerGroup>> FindLayerGroups(
    const graph::Graph& graph, const KeptNodes& kept,
    TransformContext* context);

// Whether the node limits its input to a constant range of 8 bits, which ends
// at `most` or below, so that codes of that range do the same.
bool IsTrainedRange(const graph::Graph& graph, const graph::Node& node,
                    float most = std::numeric_limits<float>::infinity());

// The data inputs of a passing op that hold numbers, as indices.
std::vector<int> MovedInputs(const graph::Node& node);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_LAYER_GROUPS_H_
