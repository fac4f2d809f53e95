// Adds nodes to a graph that is being read from a file, and knows of each
// tensor its type, what can be said of its shape, and its value where that is
// small and does not depend on an input.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_GRAPH_BUILDER_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_GRAPH_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/shapes/shape_context.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::formats {

using graph::Endpoint;
using graph::PartialShape;
using tensorflow::DataType;

// What the graphs say of TensorFlow's version: a Placeholder of shape [] is a
// scalar.
inline constexpr int kGraphProducer = 27;

// An attribute of a node that is added: {"axis", 1}, {"T", DT_FLOAT}.
struct OpAttr {
  OpAttr(absl::string_view n, int v) : name(n) { value.set_i(v); }
  OpAttr(absl::string_view n, int64_t v) : name(n) { value.set_i(v); }
  OpAttr(absl::string_view n, bool v) : name(n) { value.set_b(v); }
  OpAttr(absl::string_view n, float v) : name(n) { value.set_f(v); }
  OpAttr(absl::string_view n, const char* v) : name(n) { value.set_s(v); }
  OpAttr(absl::string_view n, const std::string& v) : name(n) {
    value.set_s(v);
  }
  OpAttr(absl::string_view n, DataType v) : name(n) { value.set_type(v); }
  OpAttr(absl::string_view n, const PartialShape& v) : name(n) {
    *value.mutable_shape() = v.ToProto();
  }
  OpAttr(absl::string_view n, const std::vector<int64_t>& v) : name(n) {
    value.mutable_list()->mutable_i()->Add(v.begin(), v.end());
  }
  OpAttr(absl::string_view n, const std::vector<DataType>& v) : name(n) {
    for (const DataType type : v) value.mutable_list()->add_type(type);
  }
  OpAttr(absl::string_view n, const std::vector<std::string>& v) : name(n) {
    for (const std::string& text : v) value.mutable_list()->add_s(text);
  }
  OpAttr(absl::string_view n, tensorflow::AttrValue v)
      : name(n), value(std::move(v)) {}

  std::string name;
  tensorflow::AttrValue value;
};

// The first error stays (status()); whatever is added after it is nothing, and
// asking about nothing gives nothing, so that callers check once at the end.
class GraphBuilder {
 public:
  GraphBuilder() = default;
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  graph::Graph& graph() { return graph_; }
  const graph::Graph& graph() const { return graph_; }
  // Nodes are called "scope/Op" from now on.
  void set_scope(const std::string& scope) { scope_ = scope; }
  const std::string& scope() const { return scope_; }

  const absl::Status& status() const { return status_; }
  void Fail(absl::Status status);
  // Gives the error away; adding works again.
  absl::Status TakeStatus();

  // --- Adding ----------------------------------------------------------------

  // Adds a node and returns its outputs. Type attributes and numbers of inputs
  // follow from the inputs where `attrs` does not have them. A node whose small
  // result is known becomes a constant.
  std::vector<Endpoint> AddAll(absl::string_view op,
                               const std::vector<Endpoint>& inputs,
                               std::vector<OpAttr> attrs = {});
  // The same for ops with one output, or whose first is wanted.
  Endpoint Add(absl::string_view op, const std::vector<Endpoint>& inputs,
               std::vector<OpAttr> attrs = {});
  Endpoint Constant(tensorflow::TensorProto value);
  Endpoint Constant(const runtime::Tensor& value);
  // Vectors and scalars.
  Endpoint Int32s(const std::vector<int64_t>& values);
  Endpoint Int64s(const std::vector<int64_t>& values);
  Endpoint Int32(int64_t value);
  Endpoint Floats(const std::vector<float>& values);
  // A number as a scalar of any type that has numbers.
  Endpoint Scalar(DataType dtype, double value);
  // A node without checks and knowledge but those given: placeholders, calls.
  Endpoint AddPlaceholder(const std::string& name, DataType dtype,
                          const PartialShape& shape);

  // --- Knowing ---------------------------------------------------------------

  DataType dtype(Endpoint tensor) const;
  const PartialShape& shape(Endpoint tensor) const;
  // Says more about a shape that is not known otherwise.
  void SetShape(Endpoint tensor, PartialShape shape);
  // The constant that a tensor is, through Identity; nullptr for others.
  const tensorflow::TensorProto* ConstantOf(Endpoint tensor) const;
  // The value of a small tensor that does not depend on an input.
  std::optional<runtime::Tensor> Known(Endpoint tensor) const;
  // Whole numbers, if all or only some of them are known.
  std::optional<std::vector<int64_t>> KnownInts(Endpoint tensor) const;
  const graph::PartialValue* PartialInts(Endpoint tensor) const;
  // Elements of a constant of a floating type, of at most 2^24 elements.
  std::optional<std::vector<float>> KnownFloats(Endpoint tensor) const;
  // What shape inference knows, for another builder's placeholder.
  const graph::ShapeContext::Tensor& knowledge(Endpoint tensor) const;
  void set_knowledge(Endpoint tensor, graph::ShapeContext::Tensor known);

 private:
  struct NodeKnowledge {
    std::vector<DataType> types;
    std::vector<graph::ShapeContext::Tensor> outputs;
  };

  absl::Status CompleteTypes(const std::vector<Endpoint>& inputs,
                             tensorflow::NodeDef* def) const;
  std::optional<std::vector<Endpoint>> Fold(const tensorflow::NodeDef& def,
                                            const std::vector<Endpoint>& inputs,
                                            const NodeKnowledge& known);

  graph::Graph graph_;
  std::string scope_ = "model";
  absl::Status status_;
  // Indexed by NodeId.
  std::vector<NodeKnowledge> nodes_;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_GRAPH_BUILDER_H_
