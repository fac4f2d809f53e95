// What a shape function sees of one node. shape_inference.h is the way in; this
// file is for those who add an op.
//
// A shape function reads the node's attributes and what is known of its
// inputs, and sets what can be known of its outputs. Outputs it does not set
// are of unknown shape. An error means that no run of the node could succeed;
// the node's outputs are then unknown and the message becomes a ShapeProblem.

#ifndef OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_CONTEXT_H_
#define OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/spatial_attrs.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::graph {

// Integer tensors are followed through the graph up to this many elements;
// longer ones do not carry shapes.
inline constexpr int64_t kMaxValueElements = 1024;

// One node while its shapes are inferred. The number of inputs has been checked
// against the op's signature.
class ShapeContext {
 public:
  // What is known of one tensor.
  struct Tensor {
    PartialShape shape;
    // Only for whole-number tensors of known shape.
    std::optional<PartialValue> value;
    // What a resource handle points at, when it is a variable's.
    std::optional<PartialShape> variable_shape;
  };

  // OWNERSHIP: all arguments must outlive the context. `inputs` has one entry
  // per data input; `producer` is the graph's producer version.
  ShapeContext(const tensorflow::OpDef& op_def, const tensorflow::NodeDef& node,
               std::vector<const Tensor*> inputs, int output_count,
               int producer);

  const tensorflow::NodeDef& node() const { return node_; }
  const tensorflow::OpDef& op_def() const { return op_def_; }
  int producer() const { return producer_; }

  // --- Inputs ----------------------------------------------------------------
  // REQUIRES for all: 0 <= i < input_count().

  int input_count() const { return static_cast<int>(inputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[i]->shape; }
  const Tensor& input_tensor(int i) const { return *inputs_[i]; }
  // nullptr when nothing is known of the value.
  const PartialValue* value(int i) const;
  // All elements of the value; nullopt unless all are known.
  std::optional<std::vector<int64_t>> Known(int i) const;
  // The value of a scalar (or one-element) input.
  std::optional<int64_t> KnownScalar(int i) const;
  // Ports of a named input argument.
  absl::StatusOr<PortRange> Ports(absl::string_view argument) const {
    return InputPorts(op_def_, node_, argument);
  }

  // The shape whose dimensions input i holds: -1 is an unknown dimension, and
  // a scalar -1 an unknown rank. When the value is not known, its length still
  // gives the rank. ERRORS: a dimension below -1; an input of rank above 1.
  absl::StatusOr<PartialShape> ShapeFromInput(int i) const;
  // The dimension that a scalar input holds; unknown when the value is.
  // ERRORS: a negative value; an input that is no scalar.
  absl::StatusOr<int64_t> DimFromInput(int i) const;

  // --- Attributes ------------------------------------------------------------
  // The signature's default counts where the node has none.
  // ERRORS: absent without default, or of the wrong kind.

  absl::StatusOr<int64_t> Int(absl::string_view name) const;
  absl::StatusOr<bool> Bool(absl::string_view name) const;
  absl::StatusOr<std::string> String(absl::string_view name) const;
  // data_format; NHWC where the signature has none.
  absl::StatusOr<DataFormat> ReadDataFormat() const;
  absl::StatusOr<Padding> ReadPadding() const;
  absl::StatusOr<tensorflow::DataType> Type(absl::string_view name) const;
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name) const;
  absl::StatusOr<PartialShape> Shape(absl::string_view name) const;
  // list(shape); empty when absent.
  absl::StatusOr<std::vector<PartialShape>> Shapes(
      absl::string_view name) const;

  // --- Outputs ---------------------------------------------------------------
  // REQUIRES for all: 0 <= i < output_count().

  int output_count() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& output(int i) const { return outputs_[i].shape; }
  void set_output(int i, PartialShape shape);
  // No effect when the value has more than kMaxValueElements elements or does
  // not fit the output's shape.
  void set_value(int i, PartialValue value);
  void set_variable_shape(int i, PartialShape shape);

  std::vector<Tensor>& outputs() { return outputs_; }

 private:
  absl::StatusOr<const tensorflow::AttrValue*> Attr(
      absl::string_view name, tensorflow::AttrValue::ValueCase kind) const;

  const tensorflow::OpDef& op_def_;
  const tensorflow::NodeDef& node_;
  const std::vector<const Tensor*> inputs_;
  std::vector<Tensor> outputs_;
  const int producer_;
};

// An axis counted from either end, in 0..rank-1. ERRORS: outside of the rank.
absl::StatusOr<int> AxisInRank(int64_t axis, int rank);

// Output size along one axis of a sliding window.
// Only kExplicit looks at `pad_before` and `pad_after`.
// ERRORS: a stride, dilation or window below 1; a window larger than the input.
struct Window {
  int64_t size = kUnknownDim;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_before = 0;
  int64_t pad_after = 0;
};
absl::StatusOr<int64_t> WindowedSize(int64_t input, const Window& window,
                                     Padding padding);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_CONTEXT_H_
