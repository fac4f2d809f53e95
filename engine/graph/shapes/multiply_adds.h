// How many multiply-adds a node does, from the shapes of its tensors. A row
// says which function counts for its op.

#ifndef OPTFARM_ENGINE_GRAPH_SHAPES_MULTIPLY_ADDS_H_
#define OPTFARM_ENGINE_GRAPH_SHAPES_MULTIPLY_ADDS_H_

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/partial_shape.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::graph {

// A node and the shapes around it. OWNERSHIP: borrows the node.
class NodeShapes {
 public:
  NodeShapes(const tensorflow::NodeDef& node, std::vector<PartialShape> inputs,
             PartialShape output)
      : node_(node), inputs_(std::move(inputs)), output_(std::move(output)) {}

  const tensorflow::NodeDef& node() const { return node_; }
  // Unknown for an input that the node does not have.
  const PartialShape& input(size_t i) const {
    return i < inputs_.size() ? inputs_[i] : unknown_;
  }
  // Of output 0.
  const PartialShape& output() const { return output_; }

 private:
  const tensorflow::NodeDef& node_;
  const std::vector<PartialShape> inputs_;
  const PartialShape output_;
  const PartialShape unknown_;
};

// UNITS: multiply-adds in one run. nullopt when a shape is not known.

// A filter [rows, columns, channels, outputs] as input 1.
std::optional<double> ConvolutionMultiplyAdds(const NodeShapes& node);
// The same; each output is a sum over one channel.
std::optional<double> DepthwiseMultiplyAdds(const NodeShapes& node);
// A matrix as input 0, with attribute transpose_a.
std::optional<double> MatMulMultiplyAdds(const NodeShapes& node);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_SHAPES_MULTIPLY_ADDS_H_
