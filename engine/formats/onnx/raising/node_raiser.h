// What the raising of one node reads and emits.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_RAISING_NODE_RAISER_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_RAISING_NODE_RAISER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/formats/onnx/raising/axis_order.h"
#include "engine/formats/onnx/raising/graph_raiser.h"
#include "engine/formats/onnx/raising/model_builder.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::formats {

class NodeRaiser {
 public:
  // `onnx_op` is what the op's row says.
  NodeRaiser(graph::NodeId id, absl::string_view onnx_op, GraphRaiser* graph)
      : id_(id),
        node_(graph->graph().node(id)),
        onnx_op_(onnx_op),
        graph_(*graph) {}

  GraphRaiser& graph() { return graph_; }
  const graph::Node& node() const { return node_; }
  const tensorflow::NodeDef& def() const { return node_.def(); }
  const std::string& name() const { return node_.name(); }
  absl::string_view onnx_op() const { return onnx_op_; }
  int opset() const { return graph_.model()->opset(); }

  // --- Inputs and outputs ----------------------------------------------------

  int input_count() const { return static_cast<int>(node_.inputs().size()); }
  // ERRORS: InvalidArgument when the node has fewer.
  absl::Status RequireInputs(int count) const;
  // REQUIRES of all below: 0 <= index < input_count().
  graph::Endpoint input(int index) const {
    return node_.inputs()[static_cast<size_t>(index)];
  }
  graph::Endpoint output(int port = 0) const { return {id_, port}; }
  const graph::PartialShape& InShape(int index) const {
    return graph_.shapes().Of(input(index));
  }
  const graph::PartialShape& OutShape(int port = 0) const {
    return graph_.shapes().Of(output(port));
  }
  tensorflow::DataType InType(int index) const {
    return graph_.TypeOf(input(index));
  }
  tensorflow::DataType OutType(int port = 0) const {
    return graph_.TypeOf(output(port));
  }
  AxisOrder OrderOf(int index) const { return graph_.OrderOf(input(index)); }
  ValueId In(int index, const AxisOrder& order = {}) {
    return graph_.In(input(index), order);
  }
  // The whole numbers of an input that are known without running the graph.
  // ERRORS: FailedPrecondition naming it as `what`.
  absl::StatusOr<std::vector<int64_t>> Integers(int index,
                                                absl::string_view what);
  absl::StatusOr<int64_t> Integer(int index, absl::string_view what);
  // The input's rank. ERRORS: FailedPrecondition when it is not known.
  absl::StatusOr<int> Rank(int index) const;
  // An axis that may count from the end.
  // ERRORS: InvalidArgument when it is out of range.
  absl::StatusOr<int> Axis(int64_t axis, int rank) const;

  void Set(ValueId value, AxisOrder order = {}) {
    graph_.Set(output(), value, std::move(order));
  }
  void SetPort(int port, ValueId value, AxisOrder order = {}) {
    graph_.Set(output(port), value, std::move(order));
  }

  // --- Emitting --------------------------------------------------------------

  // A node with one output.
  ValueId Emit(absl::string_view op, std::vector<ValueId> inputs,
               std::vector<OnnxAttribute> attributes = {});
  std::vector<ValueId> EmitMany(absl::string_view op,
                                std::vector<ValueId> inputs, int count,
                                std::vector<OnnxAttribute> attributes = {});
  // No effect when the types are one in ONNX.
  ValueId Cast(ValueId value, tensorflow::DataType from,
               tensorflow::DataType to);
  // Inputs that ONNX wants as int64, from an input of any whole-number type.
  ValueId InAsInt64(int index);
  ValueId Ints(absl::Span<const int64_t> values) {
    return graph_.AddInts(values, name());
  }
  ValueId Number(tensorflow::DataType type, double value) {
    return graph_.AddNumber(type, value);
  }
  ValueId Reshape(ValueId value, absl::Span<const int64_t> dims) {
    return Emit("Reshape", {value, Ints(dims)});
  }
  ValueId Unsqueeze(ValueId value, absl::Span<const int64_t> axes) {
    return Emit("Unsqueeze", {value, Ints(axes)});
  }
  ValueId Squeeze(ValueId value, absl::Span<const int64_t> axes) {
    return Emit("Squeeze", {value, Ints(axes)});
  }
  ValueId Transpose(ValueId value, std::vector<int64_t> perm) {
    return Emit("Transpose", {value}, {{"perm", std::move(perm)}});
  }
  // The ops that reduce axes; how they are told depends on the opset.
  ValueId Reduce(absl::string_view op, ValueId value,
                 const std::vector<int64_t>& axes, bool keep_dims);

 private:
  graph::NodeId id_;
  const graph::Node& node_;
  absl::string_view onnx_op_;
  GraphRaiser& graph_;
};

// The order that a node with several inputs of broadcast shapes works in: that
// of its largest input whose rank is the result's.
AxisOrder CommonOrder(const NodeRaiser& n, absl::Span<const int> inputs,
                      int port = 0);

// Input `index` in the order of a result of rank `rank`, as ONNX broadcasts it:
// with leading axes where it has fewer.
// ERRORS: FailedPrecondition when its rank is not known and must be.
absl::StatusOr<ValueId> BroadcastIn(NodeRaiser& n, int index,
                                    const AxisOrder& order);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_RAISING_NODE_RAISER_H_
