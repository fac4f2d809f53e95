// Adding the nodes that 8-bit layers are made of, one group after another.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_NODES_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_NODES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"
#include "engine/transforms/quantizing/layer_groups.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::transforms {

// Quantized values with the real numbers that the lowest and the highest stand
// for.
struct QuantizedTensor {
  graph::Endpoint values, min, max;

  std::vector<graph::Endpoint> inputs() const { return {values, min, max}; }
};

// What stands for a group: its quantized values, and the node that waits for
// what the group's float nodes waited for.
struct QuantizedGroup {
  QuantizedTensor quantized;
  graph::NodeId replacement = graph::kNoNode;
};

// Outputs 0, 1 and 2 of a node.
QuantizedTensor ResultOf(graph::NodeId id);

class LayerNodes {
 public:
  explicit LayerNodes(graph::Graph* graph) : graph_(graph) {}

  // What is added from now on belongs to the group.
  void Begin(const LayerGroup& group);

  const graph::Node& node(graph::NodeId id) const { return graph_->node(id); }
  graph::Graph* graph() { return graph_; }
  // The node whose value the group computes.
  graph::NodeId last() const { return last_; }

  // A definition with a short name.
  tensorflow::NodeDef Make(absl::string_view name, absl::string_view op) const;
  // One whose name says what float node it computes.
  tensorflow::NodeDef MakeLayer(absl::string_view op) const;

  graph::NodeId Add(tensorflow::NodeDef def,
                    absl::Span<const graph::Endpoint> inputs);
  // Inside a loop an Enter gives it, as it gives the group's weights.
  graph::Endpoint AddConstant(absl::string_view name,
                              const runtime::Tensor& value);
  // The same, in few bytes when all elements are equal.
  graph::Endpoint AddFloats(absl::string_view name,
                            absl::Span<const float> values);
  // Waits for what the group waits for: a node without inputs that are computed
  // in the group's loop would run outside of it.
  void Anchor(graph::NodeId id);

  // The quantized values of a float tensor; QuantizeV2 where there are none
  // yet.
  QuantizedTensor QuantizedOf(graph::Endpoint floats);
  void SetQuantized(graph::Endpoint floats, const QuantizedTensor& quantized) {
    quantized_.emplace(floats, quantized);
  }

  // Accumulators as 8-bit values of the range that they have at each run.
  QuantizedTensor Requantized(const QuantizedTensor& accumulators,
                              absl::string_view name = "");
  // Quantized values in another shape; -1 for the dimension that is not known.
  QuantizedTensor Reshaped(const QuantizedTensor& quantized,
                           absl::Span<const int64_t> dims,
                           absl::string_view name);
  // Quantized values as bytes, and back.
  graph::Endpoint BytesOf(graph::Endpoint quantized);
  graph::Endpoint QuantizedOfBytes(graph::Endpoint bytes);

 private:
  graph::Endpoint IntoLoops(graph::NodeId constant, tensorflow::DataType type);
  QuantizedTensor AddQuantize(graph::Endpoint floats);
  graph::Endpoint Shared(int32_t value);
  graph::Endpoint Cast(graph::Endpoint from, absl::string_view name,
                       tensorflow::DataType from_type,
                       tensorflow::DataType to_type);

  graph::Graph* graph_;
  int count_ = 0;
  // Of the group at hand.
  std::string prefix_;
  graph::NodeId last_ = graph::kNoNode;
  graph::NodeId anchor_ = graph::kNoNode;
  // What brings the group's weights into its loops, the outermost first.
  std::vector<graph::NodeId> enters_;
  // What has been made, for those who need it again. Dimensions by value and
  // anchor; bytes by the quantized values that they are.
  absl::flat_hash_map<graph::Endpoint, QuantizedTensor> quantized_;
  absl::flat_hash_map<std::pair<int32_t, graph::NodeId>, graph::NodeId>
      vectors_;
  absl::flat_hash_map<graph::Endpoint, graph::Endpoint> bytes_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_NODES_H_
