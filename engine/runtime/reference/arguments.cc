#include "engine/runtime/reference/arguments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::runtime {
namespace {

using graph::DataTypeName;

absl::Status Mismatch(absl::string_view name, absl::string_view expected,
                      absl::string_view got) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' must be ", expected, ", but is ", got));
}

}  // namespace

absl::Status RequireTypeAttr(const tensorflow::NodeDef& node,
                             absl::string_view attr,
                             std::initializer_list<DataType> supported) {
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, attr, tensorflow::DT_INVALID));
  if (dtype == tensorflow::DT_INVALID ||
      std::find(supported.begin(), supported.end(), dtype) != supported.end()) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat(node.op(), " has no kernel for ", attr, "=",
                   DataTypeName(dtype), ", only for ",
                   absl::StrJoin(supported, ", ",
                                 [](std::string* out, DataType type) {
                                   absl::StrAppend(out, DataTypeName(type));
                                 }),
                   "; put Casts around the node, or end the graph before it"));
}

absl::Status RequireInputs(const KernelContext& context, int count) {
  if (context.num_inputs() == count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "expected ", count, " inputs, but got ", context.num_inputs()));
}

absl::Status RequireInputsAtLeast(const KernelContext& context, int count) {
  if (context.num_inputs() >= count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "expected at least ", count, " inputs, but got ", context.num_inputs()));
}

absl::Status RequireOutputs(const KernelContext& context, int count) {
  if (context.num_outputs() == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the node declares ", context.num_outputs(),
                   " outputs, but its inputs give ", count));
}

absl::Status RequireDtype(const Tensor& tensor, absl::string_view name,
                          DataType dtype) {
  if (tensor.dtype() == dtype) return absl::OkStatus();
  return Mismatch(name, DataTypeName(dtype), DataTypeName(tensor.dtype()));
}

absl::Status RequireSameDtype(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("inputs must have one dtype, but are ",
                   DataTypeName(a.dtype()), " and ", DataTypeName(b.dtype())));
}

absl::Status RequireRank(const Tensor& tensor, absl::string_view name,
                         int rank) {
  if (tensor.has_value() && tensor.rank() == rank) return absl::OkStatus();
  return Mismatch(name, absl::StrCat("of rank ", rank),
                  absl::StrCat("of shape ", tensor.shape().ToString()));
}

absl::Status RequireShape(const Tensor& tensor, absl::string_view name,
                          const Shape& shape) {
  if (tensor.shape() == shape) return absl::OkStatus();
  return Mismatch(name, absl::StrCat("of shape ", shape.ToString()),
                  absl::StrCat("of shape ", tensor.shape().ToString()));
}

absl::Status RequireOneElement(const Tensor& tensor, absl::string_view name) {
  if (tensor.has_value() && tensor.num_elements() == 1) {
    return absl::OkStatus();
  }
  return Mismatch(name, "a scalar",
                  absl::StrCat("of shape ", tensor.shape().ToString()));
}

absl::Status UnsupportedDtype(absl::string_view name, DataType dtype) {
  return absl::UnimplementedError(absl::StrCat(
      "'", name, "' of dtype ", DataTypeName(dtype), " is not supported"));
}

absl::StatusOr<int64_t> ReadInteger(const Tensor& tensor,
                                    absl::string_view name) {
  OPTFARM_RETURN_IF_ERROR(RequireOneElement(tensor, name));
  absl::StatusOr<std::vector<int64_t>> values = tensor.AsInt64s();
  if (!values.ok()) {
    return Mismatch(name, "an integer", DataTypeName(tensor.dtype()));
  }
  return (*values)[0];
}

absl::StatusOr<std::vector<int64_t>> ReadIntegers(const Tensor& tensor,
                                                  absl::string_view name) {
  if (tensor.rank() > 1 || tensor.num_elements() > kMaxRank) {
    return Mismatch(name,
                    absl::StrCat("a vector of at most ", kMaxRank, " integers"),
                    absl::StrCat("of shape ", tensor.shape().ToString()));
  }
  absl::StatusOr<std::vector<int64_t>> values = tensor.AsInt64s();
  if (!values.ok()) {
    return Mismatch(name, "integers", DataTypeName(tensor.dtype()));
  }
  return values;
}

absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "axis ", axis, " is not within [", -rank, ", ", rank, ")"));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<int> ReadAxis(const Tensor& tensor, absl::string_view name,
                             int rank) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, ReadInteger(tensor, name));
  return NormalizeAxis(axis, rank);
}

absl::StatusOr<Shape> WithDim(const Shape& shape, int axis, int64_t size) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[axis] = size;
  return Shape::FromDims(dims);
}

int64_t DimProduct(const Shape& shape, int begin, int end) {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) product *= shape.dim(i);
  return product;
}

}  // namespace optfarm::runtime
