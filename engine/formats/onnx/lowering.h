// What the lowering of one operator sees and does. A lowering reads inputs and
// attributes of its node, adds nodes to the graph, and sets the node's outputs:
//
//   absl::Status LowerReciprocal(NodeLowering& n) {
//     n.SetOutput(0, n.Add("Reciprocal", {n.input(0)}));
//     return absl::OkStatus();
//   }
//
// Errors of what is added stay in the builder and are found afterwards, so a
// lowering returns only what it says itself.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_LOWERING_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_LOWERING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/onnx/graph_builder.h"
#include "onnx/onnx.pb.h"

namespace optfarm::formats {

class OnnxGraphReader;

class NodeLowering {
 public:
  // OWNERSHIP: all arguments outlive the lowering; a missing input is nothing.
  NodeLowering(const onnx::NodeProto& node, int opset,
               std::vector<Endpoint> inputs, OnnxGraphReader* reader,
               GraphBuilder* builder);

  const onnx::NodeProto& node() const { return node_; }
  const std::string& op() const { return node_.op_type(); }
  // Version of the node's domain that the model was written for.
  int opset() const { return opset_; }
  // The graph that the node is in; for subgraphs.
  OnnxGraphReader& reader() { return *reader_; }
  GraphBuilder& builder() { return *builder_; }

  // --- Inputs ----------------------------------------------------------------

  int input_count() const { return static_cast<int>(inputs_.size()); }
  // False for one that is left out.
  bool has_input(int i) const;
  // A missing input is an error of the model.
  Endpoint input(int i);
  // All that are not left out.
  std::vector<Endpoint> inputs() const;

  // --- Attributes ------------------------------------------------------------
  // An attribute of another kind is an error of the model.

  bool has_attr(absl::string_view name) const;
  int64_t Int(absl::string_view name, int64_t absent);
  float Float(absl::string_view name, float absent);
  std::string String(absl::string_view name, absl::string_view absent);
  // Empty when absent.
  std::vector<int64_t> Ints(absl::string_view name);
  std::vector<float> Floats(absl::string_view name);
  std::vector<std::string> Strings(absl::string_view name);
  // nullptr when absent. OWNERSHIP: the node's.
  const onnx::TensorProto* Tensor(absl::string_view name);
  const onnx::GraphProto* Graph(absl::string_view name);

  // --- Knowledge -------------------------------------------------------------

  DataType dtype(Endpoint tensor) const { return builder_->dtype(tensor); }
  const PartialShape& shape(Endpoint tensor) const {
    return builder_->shape(tensor);
  }
  // ERRORS: InvalidArgument when it is not known.
  absl::StatusOr<int> Rank(Endpoint tensor) const;
  // `axis` from 0, where it counts from the end if it is negative.
  // ERRORS: InvalidArgument outside of the rank.
  static absl::StatusOr<int> Axis(int64_t axis, int rank);
  std::optional<std::vector<int64_t>> KnownInts(Endpoint tensor) const {
    return builder_->KnownInts(tensor);
  }
  std::optional<std::vector<float>> KnownFloats(Endpoint tensor) const {
    return builder_->KnownFloats(tensor);
  }
  // Whole numbers of input i, which the lowering cannot do without.
  // ERRORS: Unimplemented when they are known only while the model runs.
  absl::StatusOr<std::vector<int64_t>> RequireInts(int i);

  // --- Adding ----------------------------------------------------------------

  Endpoint Add(absl::string_view op, const std::vector<Endpoint>& inputs,
               std::vector<OpAttr> attrs = {}) {
    return builder_->Add(op, inputs, std::move(attrs));
  }
  std::vector<Endpoint> AddAll(absl::string_view op,
                               const std::vector<Endpoint>& inputs,
                               std::vector<OpAttr> attrs = {}) {
    return builder_->AddAll(op, inputs, std::move(attrs));
  }
  Endpoint Int32s(const std::vector<int64_t>& values) {
    return builder_->Int32s(values);
  }
  Endpoint Int64s(const std::vector<int64_t>& values) {
    return builder_->Int64s(values);
  }
  Endpoint Int32(int64_t value) { return builder_->Int32(value); }
  // A scalar of the tensor's type.
  Endpoint ScalarLike(Endpoint tensor, double value) {
    return builder_->Scalar(dtype(tensor), value);
  }
  // No node where the tensor is of this type, or has this order, already. A
  // constant, and a constant behind DequantizeLinear, is transposed here.
  Endpoint Cast(Endpoint tensor, DataType dtype);
  Endpoint Transpose(Endpoint tensor, const std::vector<int64_t>& order);
  // One dimension may be -1, and 0 is a size like any other.
  Endpoint Reshape(Endpoint tensor, const std::vector<int64_t>& dims);
  // A result of `like`'s shape but for the last dimension, from a tensor with
  // the same elements in two dimensions.
  Endpoint ReshapeRowsLike(Endpoint rows, Endpoint like, int64_t last);
  // x + bias. Where x is a product whose rows were reshaped, a constant vector
  // is added before the reshape, where the product can take it as its bias.
  Endpoint AddBias(Endpoint x, Endpoint bias);
  // The shape of a tensor: int64 and of rank 1.
  Endpoint ShapeOf(Endpoint tensor);
  // New dimensions of size 1 at these places of the result, or the removal of
  // these; from 0, increasing.
  Endpoint Unsqueeze(Endpoint tensor, const std::vector<int64_t>& axes);
  Endpoint Squeeze(Endpoint tensor, const std::vector<int64_t>& axes);
  // NCHW to NHWC and back, for any number of spatial dimensions.
  Endpoint ToChannelsLast(Endpoint tensor, int rank);
  Endpoint ToChannelsFirst(Endpoint tensor, int rank);

  // --- Outputs ---------------------------------------------------------------

  int output_count() const { return node_.output_size(); }
  bool wants_output(int i) const {
    return i < node_.output_size() && !node_.output(i).empty();
  }
  // Outputs that nobody wants may be set or not.
  void SetOutput(int i, Endpoint tensor);
  const std::vector<Endpoint>& outputs() const { return outputs_; }

 private:
  int64_t ChannelAxis(Endpoint dequantized) const;
  Endpoint WithOtherWeights(Endpoint dequantized, Endpoint weights,
                            int64_t axis);
  const onnx::AttributeProto* Find(absl::string_view name,
                                   onnx::AttributeProto::AttributeType type);

  const onnx::NodeProto& node_;
  const int opset_;
  const std::vector<Endpoint> inputs_;
  std::vector<Endpoint> outputs_;
  OnnxGraphReader* const reader_;
  GraphBuilder* const builder_;
};

// ERRORS: InvalidArgument for a node that no model may have; Unimplemented for
// one that we do not support. The reader adds the node's name and operator.
using LowerFunction = absl::Status (*)(NodeLowering& n);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_LOWERING_H_
