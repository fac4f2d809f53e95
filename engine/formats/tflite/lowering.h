// Lowering of a TensorFlow Lite file into a graph, one operator after another.
//
// A tensor has up to two forms in the graph. `Stored` is what the file's tensor
// holds: quantized values where it is quantized. `Real` is what it means: the
// same behind DequantizeLinear. An operator that computes takes real inputs and
// sets a real output, which goes through QuantizeLinear with the output's own
// scale and zero point; one that only moves elements works on stored ones.
// Both forms are made once and shared.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_LOWERING_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_LOWERING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/formats/tflite/model_file.h"
#include "engine/formats/tflite/node_maker.h"
#include "engine/formats/tflite/tensor_facts.h"
#include "engine/formats/tflite/variables.h"
#include "tensorflow/core/framework/function.pb.h"

namespace optfarm::tflite {

// What the lowerings of all subgraphs of one file share.
struct ModelLowering {
  explicit ModelLowering(const ModelFile& model_file) : file(model_file) {}

  const ModelFile& file;
  Budget budget;
  // Bodies of If and While, by subgraph.
  tensorflow::FunctionDefLibrary library;
  std::map<int, std::string> function_of;
  // Subgraphs that are being lowered: one that comes again calls itself.
  std::vector<int> open_subgraphs;
};

// A subgraph's tensors as values of the nodes that `maker` adds.
class SubgraphLowering {
 public:
  // `variables` is null where state is not supported, in bodies of If and
  // While. OWNERSHIP: borrowed.
  SubgraphLowering(ModelLowering* model, int subgraph, NodeMaker* maker,
                   std::map<std::string, Variable>* variables);

  // Gives an input of the subgraph its value.
  void Bind(int tensor, const Value& value) { stored_[tensor] = value; }
  // Lowers all operators. ERRORS: InvalidArgument for operators that are not
  // well formed; Unimplemented naming the operator, its outputs and the reason.
  absl::Status LowerOperators();

  ModelLowering& model() { return model_; }
  const SubGraph& subgraph() const { return subgraph_; }
  int index() const { return index_; }
  NodeMaker& maker() { return maker_; }
  std::map<std::string, Variable>* variables() { return variables_; }
  const Tensor& tensor(int index) const;
  // The name that the tensor's node gets.
  std::string NameOf(int tensor) const;

  // REQUIRES: 0 <= tensor < TensorCount().
  absl::StatusOr<Value> Stored(int tensor);
  absl::StatusOr<Value> Real(int tensor);
  // Constants that a tensor's value is made of: its own, or those that a
  // DEQUANTIZE or DENSIFY in front of it reads. -1: it is not constant.
  int ConstantSource(int tensor) const;
  bool IsConstant(int tensor) const;
  // REQUIRES: IsConstant.
  absl::StatusOr<Constant> ConstantOf(int tensor) const;
  // Checked, and read once.
  absl::StatusOr<Quantization> QuantizationAt(int tensor) const;

  // The value of a tensor that is a variable. Before the first run it is zero.
  // ERRORS: Unimplemented in bodies of If and While; InvalidArgument for a
  // tensor without a shape.
  absl::StatusOr<Value> ReadState(int tensor);
  absl::Status AssignState(int tensor, const Value& value);

  // The tensor's values behind QuantizeLinear or DequantizeLinear.
  absl::StatusOr<Value> Quantized(int tensor, const Value& real,
                                  absl::string_view name);
  absl::StatusOr<Value> Dequantized(int tensor, const Value& stored,
                                    absl::string_view name);
  // DequantizeLinear of constant values.
  Value DequantizedBy(const Quantization& quantization, int axis, int bits,
                      const Value& stored, absl::string_view name);
  void SetStored(int tensor, const Value& value);
  void SetReal(int tensor, const Value& value) { real_[tensor] = value; }
  // Whether a tensor has a value already.
  bool HasValue(int tensor) const { return stored_.contains(tensor); }

 private:
  absl::Status LowerOperator(const Operator& op);
  std::string KeyOfState(int tensor) const;
  absl::StatusOr<Constant> ZeroState(int tensor) const;

  ModelLowering& model_;
  const int index_;
  const SubGraph& subgraph_;
  NodeMaker& maker_;
  std::map<std::string, Variable>* variables_;
  absl::flat_hash_map<int, Value> stored_, real_;
  // Scale and zero point of a tensor, as nodes.
  absl::flat_hash_map<int, std::pair<Value, Value>> parameters_;
  // The operator that makes a tensor.
  absl::flat_hash_map<int, const Operator*> maker_of_;
};

// One operator. Getters return an empty value after the first error, which the
// driver reports when the lowering returns.
class OpLowering {
 public:
  OpLowering(SubgraphLowering* subgraph, const Operator* op);

  // --- The operator ----------------------------------------------------------

  const Operator& op() const { return op_; }
  const OperatorKind& kind() const { return kind_; }
  int input_count() const;
  int output_count() const;
  // Whether input i is there and not left out.
  bool Has(int i) const;
  // Tensor numbers. REQUIRES: Has(i); i < output_count().
  int InputId(int i) const;
  int OutputId(int i) const;
  const Tensor& in(int i) const { return subgraph_.tensor(InputId(i)); }
  const Tensor& out(int i) const { return subgraph_.tensor(OutputId(i)); }
  // Checked. REQUIRES: Has(i); i < output_count().
  absl::StatusOr<Quantization> QuantizationOfInput(int i) const {
    return subgraph_.QuantizationAt(InputId(i));
  }
  absl::StatusOr<Quantization> QuantizationOfOutput(int i) const {
    return subgraph_.QuantizationAt(OutputId(i));
  }
  // Whether a tensor holds quantized values of 8 bits with one scale, so that
  // XNNPACK's arithmetic applies.
  bool HasBytes(const Tensor& tensor) const;
  // Whether the tensors have the same type, scale and zero point.
  bool InputFitsOutput(int input, int output) const;

  // --- Values ----------------------------------------------------------------

  Value Stored(int i);
  Value Real(int i);
  // Stored(i), whose one element may be in a vector, as a scalar.
  Value Scalar(int i, absl::string_view suffix);
  // The elements of a constant of integers; nullopt where it is not constant.
  std::optional<std::vector<int64_t>> Integers(int i);

  // --- Nodes -----------------------------------------------------------------

  // A node named after output 0: "name/suffix".
  Value Add(
      absl::string_view op_name, absl::string_view suffix,
      absl::Span<const Value> inputs,
      SetAttributes attributes = [](tensorflow::NodeDef*) {});
  Value Port(const Value& value, int port) {
    return subgraph_.maker().Port(value, port);
  }
  Value Const(absl::string_view suffix, const Constant& constant);
  Value IntVector(absl::string_view suffix, absl::Span<const int64_t> values);
  Value Int(absl::string_view suffix, int64_t value);
  Value Float(absl::string_view suffix, float value);
  // The value's element zero: a scalar of `type`.
  Value ZeroOf(absl::string_view suffix, tensorflow::DataType type);
  Value Cast(const Value& value, tensorflow::DataType type,
             absl::string_view suffix);

  // Keeps the node's name: for one whose other outputs are read, too.
  void Pin(const Value& value) { pinned_.push_back(value.node); }

  // --- Outputs ---------------------------------------------------------------

  // The node that made the value takes the tensor's name.
  void SetStored(int o, const Value& value);
  // Quantizes where the output is quantized; `attributes` are of that node.
  void SetReal(
      int o, const Value& value,
      SetAttributes attributes = [](tensorflow::NodeDef*) {});

  // --- The end ---------------------------------------------------------------

  SubgraphLowering& subgraph() { return subgraph_; }
  void Fail(absl::Status status);
  const absl::Status& status() const { return subgraph_.maker().status(); }

 private:
  Value Finish(int o, const Value& value);

  SubgraphLowering& subgraph_;
  const Operator& op_;
  const OperatorKind& kind_;
  // Nodes that this operator added, and those that may not be renamed.
  std::vector<std::string> own_;
  std::vector<std::string> pinned_;
};

// What a lowering says of a thing that it does not support.
absl::Status Unsupported(absl::string_view what);

// Lowers a subgraph into nodes of the caller's: `inputs` and the results are
// stored values in the subgraph's order.
absl::StatusOr<std::vector<Value>> InlineSubgraph(
    ModelLowering* model, int index, NodeMaker* maker,
    std::map<std::string, Variable>* variables, absl::Span<const Value> inputs);

// The function of the library that does what a subgraph does; made at the
// first call. ERRORS: Unimplemented where the subgraph has state.
absl::StatusOr<std::string> FunctionOf(ModelLowering* model, int index);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_LOWERING_H_
