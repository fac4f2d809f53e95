#include "engine/formats/onnx/element_types.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/tensors.h"

namespace optfarm::formats {

absl::StatusOr<DataType> ElementTypeAttr(NodeLowering& n,
                                         absl::string_view name, int absent) {
  const int64_t type = n.Int(name, absent);
  if (type < 0 || type > 1000) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' = ", type, " is not a type"));
  }
  const int number = static_cast<int>(type);
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, DataTypeOfOnnx(number));
  // These are kept in 8 bits, which round and overflow in another way.
  if (graph::ElementBytes(dtype) == 1 && BitsOfOnnx(number) != 8 &&
      dtype != tensorflow::DT_BOOL) {
    return absl::UnimplementedError(absl::StrCat(
        "conversion to ", OnnxTypeName(number), " is not supported"));
  }
  return dtype;
}

Endpoint EmptyVector(NodeLowering& n, DataType type) {
  const auto empty = runtime::Tensor::Zeros(type, runtime::Shape({0}));
  if (!empty.ok()) {
    n.builder().Fail(empty.status());
    return {};
  }
  return n.builder().Constant(*empty);
}

Endpoint InputOrEmpty(NodeLowering& n, int i, DataType type) {
  return n.has_input(i) ? n.Cast(n.input(i), type) : EmptyVector(n, type);
}

Endpoint AsScalar(NodeLowering& n, Endpoint tensor) {
  const PartialShape& shape = n.shape(tensor);
  if (shape.has_rank() && shape.rank() == 0) return tensor;
  return n.Reshape(tensor, {});
}

}  // namespace optfarm::formats
