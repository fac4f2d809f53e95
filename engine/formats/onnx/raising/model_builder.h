// An ONNX model in the making: tensors by number, nodes in order, constants
// once each. Names are given when the model is finished, so that a tensor can
// still get the name that a user knows it by.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_RAISING_MODEL_BUILDER_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_RAISING_MODEL_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/partial_shape.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::onnx {
class GraphProto;
class NodeProto;
}  // namespace optfarm::onnx

namespace optfarm::formats {

// A tensor of the model.
using ValueId = int;
// An optional input that is not given.
inline constexpr ValueId kNoValue = -1;

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>,
               std::vector<float>, std::vector<std::string>>
      value;
};

// ONNX's number for a type, 0 for one that it does not have. Quantized types
// are the integers that code them.
int OnnxTypeOf(tensorflow::DataType type);

// A declared input or output.
struct OnnxPort {
  std::string name;
  tensorflow::DataType type = tensorflow::DT_INVALID;
  graph::PartialShape shape;
  // Names of the dimensions that are not known; may be shorter than the rank.
  std::vector<std::string> dim_names;
};

class OnnxModelBuilder {
 public:
  explicit OnnxModelBuilder(int opset) : opset_(opset) {}

  int opset() const { return opset_; }

  ValueId AddInput(OnnxPort input);
  // `bytes` are the elements, little endian. Small constants with equal
  // contents are one.
  ValueId AddConstant(tensorflow::DataType type, std::vector<int64_t> dims,
                      std::string bytes, absl::string_view name);
  // Returns the `count` outputs, which get names from `name`.
  std::vector<ValueId> AddNode(absl::string_view op,
                               std::vector<ValueId> inputs, int count,
                               std::vector<OnnxAttribute> attributes,
                               absl::string_view name);
  // One of two values, as a condition of one element says. Those that are
  // chosen under one name by one condition are outputs of one If; what nothing
  // but a branch of it needs is computed in that branch alone. REQUIRES: none
  // of what is chosen depends on another output of its If.
  ValueId AddChoice(const std::string& name, ValueId condition, ValueId if_true,
                    ValueId if_false, tensorflow::DataType type);
  // Writes a key and its value into the node that makes the value. Runtimes do
  // not look at it.
  void AddNote(ValueId value, std::string key, std::string text);
  // Declares the value as an output, under the output's name.
  void AddOutput(OnnxPort output, ValueId value);

  // The model's bytes. Nodes and constants that no output needs are left out.
  // `metadata`: keys and values.
  // ERRORS: ResourceExhausted for a model of more than 2 GB.
  absl::StatusOr<std::string> Finish(
      absl::Span<const std::pair<std::string, std::string>> metadata = {});

 private:
  struct Constant {
    tensorflow::DataType type;
    std::vector<int64_t> dims;
    std::string bytes;
    ValueId value;
  };
  struct Node {
    std::string op;
    std::string name;
    std::vector<ValueId> inputs, outputs;
    std::vector<OnnxAttribute> attributes;
    std::vector<std::pair<std::string, std::string>> notes;
    // Of an If: by branch, first the one that is taken when the condition
    // holds, a value for each output.
    std::vector<ValueId> branches[2];
    std::vector<tensorflow::DataType> types;
  };
  // The graph, or a branch of an If in it.
  struct Scope {
    int parent = -1;
    int depth = 0;
    // In an order in which each comes after what it reads.
    std::vector<int> nodes;
  };
  struct Output {
    OnnxPort port;
    ValueId value;
  };

  ValueId NewValue(absl::string_view name);
  // Whether the value is made by a node and is no output yet.
  bool MayBecomeOutput(ValueId value) const;
  // The nodes that outputs need, each after what it reads.
  std::vector<int> NeededNodes();
  std::vector<int> OrderFromOutputs() const;
  std::vector<ValueId> ReadBy(const Node& node) const;
  // Sorts the nodes into the scopes that alone need them. The branches of If
  // number i of `order` are scopes_[branch_scopes_[i]] and the one behind it.
  void FindScopes(const std::vector<int>& order);
  int CommonScope(int a, int b) const;
  // A branch returns values of its own only.
  void AddBranchReturns(int node, int branch, int scope,
                        const std::vector<int>& homes);
  void NameValues();
  // UNITS: bytes of the constants that are needed.
  uint64_t ConstantBytes() const;
  std::string NameOf(ValueId value) const;
  void WriteNode(int number, onnx::NodeProto* to) const;
  void WriteScope(int scope, onnx::GraphProto* to) const;

  int opset_;
  std::vector<OnnxPort> inputs_;
  std::vector<ValueId> input_values_;
  std::vector<Constant> constants_;
  std::vector<Node> nodes_;
  std::vector<Output> outputs_;
  // By value: the name that is wanted, and the number of the node that makes
  // it, -1 for inputs and constants.
  std::vector<std::string> names_;
  std::vector<int> makers_;
  std::vector<bool> is_fixed_name_;
  std::vector<bool> is_needed_;
  absl::flat_hash_map<std::string, ValueId> small_constants_;
  absl::flat_hash_map<std::pair<std::string, ValueId>, int> choices_;
  std::vector<Scope> scopes_;
  absl::flat_hash_map<int, int> branch_scopes_;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_RAISING_MODEL_BUILDER_H_
