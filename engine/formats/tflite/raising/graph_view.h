// A graph as the writer looks at it: the nodes that its outputs need, without
// the ones that only pass values on; who reads what; types, shapes and
// constants.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_GRAPH_VIEW_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_GRAPH_VIEW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/tflite/raising/constant.h"
#include "engine/formats/tflite/raising/model_draft.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::formats::tflite_raising {

// One input of one node.
struct Reader {
  graph::NodeId node = graph::kNoNode;
  int input = 0;
};

// A model's end: the tensor, and the shape it is fed with.
struct ModelEnd {
  graph::Endpoint tensor;
  graph::PartialShape shape;
};

// THREADS: const methods may run concurrently. OWNERSHIP: the graph outlives
// the view and does not change.
class GraphView {
 public:
  // ERRORS: InvalidArgument for a cycle.
  static absl::StatusOr<GraphView> Of(const graph::Graph& graph,
                                      std::vector<ModelEnd> inputs,
                                      std::vector<graph::Endpoint> outputs);

  const graph::Graph& graph() const { return *graph_; }
  // The needed nodes, each after its inputs; fed ones are left out.
  const std::vector<graph::NodeId>& order() const { return order_; }

  // The tensor behind Identity and its kin; itself for all others.
  graph::Endpoint Source(graph::Endpoint tensor) const;
  graph::Endpoint InputOf(graph::NodeId node, int input) const {
    return Source(graph_->node(node).inputs()[input]);
  }
  // Who reads a source, also through nodes that pass it on.
  const std::vector<Reader>& ReadersOf(graph::Endpoint source) const;
  // Whether the model is fed with the tensor, or asked for it.
  bool IsInput(graph::Endpoint source) const {
    return inputs_.contains(source);
  }
  bool IsOutput(graph::Endpoint source) const {
    return outputs_.contains(source);
  }

  const graph::PartialShape& ShapeOf(graph::Endpoint tensor) const {
    return shapes_.Of(Source(tensor));
  }
  const graph::ShapeMap& shapes() const { return shapes_; }
  // DT_INVALID where the op is not known.
  tensorflow::DataType TypeOf(graph::Endpoint tensor) const;

  // Whole numbers that are known before the model runs.
  std::optional<std::vector<int64_t>> KnownNumbers(
      graph::Endpoint tensor) const;

  // Whether ConstantAt would find a constant, without decoding it.
  bool IsConstant(graph::Endpoint tensor) const;
  // A constant, also behind nodes that rearrange, widen or dequantize it: the
  // stored elements with their scales. ERRORS: why it is none.
  absl::StatusOr<Constant> ConstantAt(graph::Endpoint tensor) const;

  // The scales of a DequantizeLinear or QuantizeLinear.
  // ERRORS: FailedPrecondition where they are not constant.
  absl::StatusOr<Quantization> ScalesOf(graph::NodeId node) const;
  // The scales of a tensor of quantized values, from who wrote or reads it.
  const Quantization* QuantizationOf(graph::Endpoint tensor) const;

 private:
  explicit GraphView(const graph::Graph& graph) : graph_(&graph) {}
  void FindReaders();
  void FindQuantizations();
  // What rearranges the tensor `input` of `node` and nothing else.
  absl::StatusOr<Constant> Rearranged(const graph::Node& node,
                                      Constant input) const;

  const graph::Graph* graph_;
  std::vector<graph::NodeId> order_;
  graph::ShapeMap shapes_;
  absl::flat_hash_set<graph::Endpoint> inputs_;
  absl::flat_hash_set<graph::Endpoint> outputs_;
  absl::flat_hash_map<graph::Endpoint, std::vector<Reader>> readers_;
  absl::flat_hash_map<graph::Endpoint, Quantization> quantizations_;
};

// Whether the op gives its first input on unchanged.
bool PassesOn(absl::string_view op);

// Whether the op gives its first input's elements on under another shape or in
// another order, and nothing else.
bool IsRearrangement(absl::string_view op);

// Whether the op gives elements of its inputs on, moved or chosen, so that
// quantized values keep their scales.
bool KeepsScales(absl::string_view op);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_GRAPH_VIEW_H_
