// The state of writing one graph as ONNX: which tensor of the model holds which
// tensor of the graph, and with which order of axes. Start here to understand
// the folder: writer.cc walks over the graph's nodes and calls the raising of
// each op (raising_table.h), which emits nodes through NodeRaiser
// (node_raiser.h).
//
// Transposes are lazy. Every tensor is kept as it came out of the node that
// made it, together with the order of its axes; nodes that do not care follow
// it, and a Transpose is emitted only where a node asks for another order. So a
// convolution net, NHWC in the graph, is NCHW in the file from its first
// convolution to its last.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_RAISING_GRAPH_RAISER_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_RAISING_GRAPH_RAISER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/formats/onnx/raising/axis_order.h"
#include "engine/formats/onnx/raising/model_builder.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::formats {

// A constant of the graph. OWNERSHIP: `bytes` are the raiser's.
struct GraphConstant {
  tensorflow::DataType type = tensorflow::DT_INVALID;
  std::vector<int64_t> dims;
  absl::string_view bytes;

  int64_t elements() const;
};

class GraphRaiser {
 public:
  // OWNERSHIP: all outlive the raiser.
  GraphRaiser(const graph::Graph& graph, const graph::ShapeMap& shapes,
              OnnxModelBuilder* model)
      : graph_(graph), shapes_(shapes), model_(model) {}

  const graph::Graph& graph() const { return graph_; }
  const graph::ShapeMap& shapes() const { return shapes_; }
  OnnxModelBuilder* model() { return model_; }

  // --- What the graph says ---------------------------------------------------

  // DT_INVALID when the op that makes it is not known.
  tensorflow::DataType TypeOf(graph::Endpoint tensor) const;
  // The tensor that this one is, behind nodes that pass their input on.
  graph::Endpoint Behind(graph::Endpoint tensor) const;
  // The value of a Const that the tensor is; nullptr for other tensors and for
  // types without elements of a fixed size.
  const GraphConstant* ConstantOf(graph::Endpoint tensor);
  // The elements of a whole-number tensor that are all known without running
  // the graph.
  std::optional<std::vector<int64_t>> IntegersOf(graph::Endpoint tensor);
  // The elements of a float constant.
  std::optional<std::vector<float>> FloatsOf(graph::Endpoint tensor);
  // The one node that reads the tensor; kNoNode when there are others or when
  // it is an output of the model.
  graph::NodeId OnlyReaderOf(graph::Endpoint tensor) const;

  // --- What the model has ----------------------------------------------------

  void Set(graph::Endpoint tensor, ValueId value, AxisOrder order = {});
  bool IsSet(graph::Endpoint tensor) const;
  // What is not an output of the model may be merged with its reader.
  void MarkOutput(graph::Endpoint tensor) { outputs_[tensor] = true; }
  // The order in which the tensor is at hand; constants are in the graph's.
  AxisOrder OrderOf(graph::Endpoint tensor) const;
  // The tensor in this order, with a Transpose where it has another one.
  // REQUIRES: `order` is empty or as long as the tensor's known rank.
  ValueId In(graph::Endpoint tensor, const AxisOrder& order = {});
  // Whether its value is in the file whatever the order, because it is a
  // constant or a dequantized one.
  bool IsConstantLike(graph::Endpoint tensor);
  // A constant or dequantized constant in this order and then with these
  // dimensions; kNoValue when it is neither. `channel_axis` is where the axis
  // of its scales ends up; -1 when there may be none.
  ValueId ConstantAs(graph::Endpoint tensor, const AxisOrder& order,
                     std::vector<int64_t> dims, int channel_axis = -1);

  // A constant first as one of these dimensions, then in this order.
  // REQUIRES: ConstantOf(tensor) != nullptr; as many elements.
  ValueId ConstantOfRank(graph::Endpoint tensor,
                         const std::vector<int64_t>& dims,
                         const AxisOrder& order);

  // A scale or zero point: a constant of one element becomes a scalar.
  ValueId ScaleOf(graph::Endpoint tensor);

  ValueId AddInts(absl::Span<const int64_t> values, absl::string_view name);
  // A number of the type. REQUIRES: a numeric type.
  ValueId AddNumber(tensorflow::DataType type, double value);
  ValueId AddFloats(absl::Span<const float> values, absl::string_view name);

 private:
  struct Raised {
    ValueId value = kNoValue;
    AxisOrder order;
  };
  struct HeldConstant {
    runtime::Tensor tensor;
    GraphConstant constant;
  };

  // A Transpose; a Reshape where only axes of one element move.
  ValueId AddReordered(graph::Endpoint tensor, const Raised& raised,
                       const AxisOrder& order);
  // What is dequantized, in another order and dequantized then: a quarter of
  // the bytes move, and runtimes take a layer for one on integers only when it
  // reads DequantizeLinear. kNoValue where that has scales for channels.
  ValueId AddDequantizedAgain(graph::Endpoint tensor, const AxisOrder& order);
  const HeldConstant* Decode(graph::NodeId id);
  // As many zero points as there are scales.
  ValueId AddZeroPoints(graph::Endpoint tensor, int64_t count);
  ValueId AddGraphConstant(graph::Endpoint tensor, const AxisOrder& order,
                           std::vector<int64_t> dims);
  bool IsWidening(const graph::Node& node) const;
  // nullptr when the node neither dequantizes nor widens a constant.
  const graph::Node* DequantizedConstant(graph::Endpoint tensor);

  const graph::Graph& graph_;
  const graph::ShapeMap& shapes_;
  OnnxModelBuilder* model_;
  absl::flat_hash_map<graph::Endpoint, Raised> raised_;
  absl::flat_hash_map<graph::Endpoint, bool> outputs_;
  absl::flat_hash_map<std::pair<ValueId, AxisOrder>, ValueId> transposed_;
  absl::flat_hash_map<std::pair<graph::Endpoint, AxisOrder>, ValueId>
      placed_constants_;
  absl::flat_hash_map<graph::NodeId, std::unique_ptr<HeldConstant>> constants_;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_RAISING_GRAPH_RAISER_H_
