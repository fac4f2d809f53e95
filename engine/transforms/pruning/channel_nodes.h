// What nodes do with the channels of a tensor, its last axis: helpers shared by
// range analysis and channel flow.

#ifndef OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_NODES_H_
#define OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_NODES_H_

#include <cstdint>
#include <optional>

#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/machinery/transform.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {

// The weights of a float Conv2D, DepthwiseConv2dNative or MatMul.
// OWNERSHIP: as FloatView.
struct ProductWeights {
  graph::NodeId constant = graph::kNoNode;
  FloatView view;
  bool is_depthwise = false;
  // Axes of the channels that are read and of those that come out.
  int input_axis = 0, output_axis = 0;
  // Elements from one channel that is read to the next.
  int64_t input_stride = 1;

  int64_t inputs() const { return view.shape().dim(input_axis); }
  // A depthwise product has so many for each channel that it reads.
  int64_t outputs() const { return view.shape().dim(output_axis); }
  // Which channel element i of the weights reads, and to which it adds.
  int64_t InputOf(int64_t i) const { return i / input_stride % inputs(); }
  int64_t OutputOf(int64_t i) const;
};

// nullopt when the weights are not constant, or the op reads its data in
// another order than with the channels as the last axis; also for a Conv2D
// whose input is not known to have inputs() channels: with more it has groups.
std::optional<ProductWeights> ReadProductWeights(const graph::Graph& graph,
                                                 const graph::ShapeMap& shapes,
                                                 graph::NodeId id);

// Whether the node reads anything but its data from a declared input of the
// graph: a Const that is fed may be anything.
bool HasFedParameters(const graph::Graph& graph,
                      const TransformContext& context, graph::NodeId id,
                      int data_input);

// Whether every output of the product sees all of its window: there are no
// zeros around the image. REQUIRES: a product with these weights.
bool SeesNoPadding(const graph::Node& node, const runtime::Shape& weights);

// Whether the node takes the largest value or the mean of windows of an image,
// each channel by itself.
bool PoolsEachChannel(const graph::Node& node);

// Whether the node takes a mean over axes that are known, the last not among
// them.
bool AveragesEachChannel(const graph::Graph& graph,
                         const graph::ShapeMap& shapes, graph::NodeId id);

// Whether the node puts zeros (Pad) or repeated values (MirrorPad) around the
// input, and none on its last axis.
bool PadsEachChannel(const graph::Graph& graph, const graph::ShapeMap& shapes,
                     graph::NodeId id);
bool PadsWithZeros(const graph::Node& node);

// Data inputs of a join along the last axis; 0 for other nodes. The first of
// them is input `*first`.
int JoinedInputs(const graph::Graph& graph, const graph::ShapeMap& shapes,
                 graph::NodeId id, int* first);

// The size of the last axis; -1 when it is not known.
int64_t ChannelsOf(const graph::ShapeMap& shapes, graph::Endpoint tensor);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_NODES_H_
