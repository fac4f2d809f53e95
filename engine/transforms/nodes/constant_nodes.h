// Reading and making Const nodes.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_CONSTANT_NODES_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_CONSTANT_NODES_H_

#include <cstdint>
#include <initializer_list>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::transforms {

inline bool IsConst(const graph::Node& node) {
  return graph::IsConst(node.op());
}

// Decodes the node's value. REQUIRES: IsConst(node).
// ERRORS: InvalidArgument naming the node when `dtype` or `value` is missing
// or cannot be decoded.
absl::StatusOr<runtime::Tensor> ConstValue(const graph::Node& node);

// The same for a float constant that a rewrite computes with.
// ERRORS: also InvalidArgument when the dtype is not float.
absl::StatusOr<runtime::Tensor> FloatConstValue(const graph::Node& node);

// Whether the tensor is a type, a shape and raw bytes, and nothing else: then
// it can be handed on as it is where its value is meant.
bool IsRawTensor(const tensorflow::TensorProto& tensor);

// A float constant's elements, where they lie whenever that is possible.
// OWNERSHIP: valid as long as the node and its value are not changed.
class FloatView {
 public:
  // ERRORS: as FloatConstValue.
  static absl::StatusOr<FloatView> Of(const graph::Node& node);

  absl::Span<const float> values() const { return values_; }
  const runtime::Shape& shape() const { return shape_; }

 private:
  // Holds the elements of a value that is not stored as raw bytes.
  runtime::Tensor decoded_;
  runtime::Shape shape_;
  absl::Span<const float> values_;
};

// The elements for changing them in place; the node's only attributes are then
// dtype and value. REQUIRES: FloatView::Of(*node) succeeds.
absl::Span<float> MutableFloats(graph::Node* node);

// A Const with the attributes dtype and value, the latter as raw bytes.
tensorflow::NodeDef MakeConst(absl::string_view name,
                              const runtime::Tensor& value);
tensorflow::NodeDef MakeScalarConst(absl::string_view name, float value);
tensorflow::NodeDef MakeVectorConst(absl::string_view name,
                                    std::initializer_list<int32_t> values);

// The same with a single number written as a number. TensorFlow writes most
// constants so, and its results of folding too; merging duplicates finds
// constants equal only when they are written alike.
tensorflow::NodeDef MakeReadableConst(absl::string_view name,
                                      const runtime::Tensor& value);

// Gives a Const another value; its only attributes are then dtype and value.
void SetConstValue(graph::Node* node, const runtime::Tensor& value);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_CONSTANT_NODES_H_
