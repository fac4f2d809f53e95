// Layers whose work is a product with constants: convolutions and matrix
// products, means, and what is multiplied channel by channel.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_PRODUCTS_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_PRODUCTS_H_

#include <initializer_list>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/quantizing/layer_groups.h"
#include "engine/transforms/quantizing/layer_nodes.h"

namespace optfarm::transforms {

// The input of a node with two that is not this constant.
graph::Endpoint NumbersBeside(const graph::Graph& graph,
                              const graph::Node& node, graph::NodeId constant);

class LayerProducts {
 public:
  // OWNERSHIP: both are borrowed. `shapes` are those of the float graph.
  LayerProducts(const graph::ShapeMap& shapes, LayerNodes* nodes)
      : shapes_(shapes), nodes_(nodes) {}

  // Each for a group of its kind, which the nodes have begun.
  // ERRORS: those of reading constants.
  absl::StatusOr<QuantizedGroup> AddProduct(const LayerGroup& group);
  absl::StatusOr<QuantizedGroup> AddMean(graph::NodeId head);
  absl::StatusOr<QuantizedGroup> AddChannels(const LayerGroup& group);

 private:
  // Weights as they stand in the graph.
  struct QuantizedWeights {
    graph::Endpoint values, min, max;
  };

  const graph::Node& node(graph::NodeId id) const { return nodes_->node(id); }
  tensorflow::NodeDef MakeProduct(absl::string_view layer_op,
                                  const LayerGroup& group) const;
  graph::NodeId AddLayer(tensorflow::NodeDef def, const QuantizedTensor& x,
                         const QuantizedWeights& weights, graph::Endpoint bias);
  absl::StatusOr<int64_t> ChannelsOf(const LayerGroup& group) const;
  absl::StatusOr<graph::Endpoint> Bias(const LayerGroup& group);
  absl::StatusOr<QuantizedWeights> Weights(const LayerGroup& group);
  absl::StatusOr<QuantizedWeights> AddWeights(absl::Span<const float> values,
                                              const runtime::Shape& shape,
                                              int64_t channels,
                                              bool channels_first,
                                              absl::Span<const float> bias);
  graph::Endpoint AddEqualWeights(std::initializer_list<int64_t> dims);
  graph::Endpoint Negated(graph::Endpoint max);
  QuantizedTensor Requantized(graph::NodeId layer, const LayerGroup& group);
  graph::NodeId AddRange(absl::Span<const graph::Endpoint> sums,
                         const LayerGroup& group);

  const graph::ShapeMap& shapes_;
  LayerNodes* nodes_;
  absl::flat_hash_map<std::string, QuantizedWeights> weights_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_PRODUCTS_H_
