#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/state/tensor_list.h"

namespace optfarm::runtime {
namespace {

// Longer lists are taken for an attack on memory.
constexpr int64_t kMostElements = int64_t{1} << 20;

}  // namespace

Tensor HandleOf(std::shared_ptr<TensorList> list) {
  return Tensor::FromResource(tensorflow::DT_VARIANT, std::move(list));
}

absl::StatusOr<TensorList*> ListOf(const KernelContext& context, int input) {
  return ResourceOf<TensorList>(context, input, "tensor list");
}

absl::StatusOr<TensorList*> ChangeableList(KernelContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(TensorList * list, ListOf(*context));
  if (context->MayReuse(0)) {
    context->SetOutput(0, context->input(0));
    return list;
  }
  auto copy = std::make_shared<TensorList>(*list);
  TensorList* const changeable = copy.get();
  context->SetOutput(0, HandleOf(std::move(copy)));
  return changeable;
}

absl::StatusOr<graph::PartialShape> ReadElementShape(const Tensor& tensor) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                           ReadIntegers(tensor, "element_shape"));
  if (tensor.rank() == 0) return graph::PartialShape();
  for (int64_t dim : dims) {
    if (dim < -1) {
      return absl::InvalidArgumentError(
          absl::StrCat("'element_shape' has a dimension of ", dim));
    }
  }
  return graph::PartialShape(dims);
}

graph::PartialShape ToPartialShape(const Shape& shape) {
  return graph::PartialShape(
      std::vector<int64_t>(shape.dims().begin(), shape.dims().end()));
}

absl::Status CheckElement(const TensorList& list, const Tensor& value) {
  if (value.dtype() != list.dtype) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an element of ", graph::DataTypeName(value.dtype()),
        " does not fit a list of ", graph::DataTypeName(list.dtype)));
  }
  return graph::MergeShapes(list.element_shape, ToPartialShape(value.shape()))
      .status();
}

absl::Status CheckListSize(int64_t size) {
  if (size >= 0 && size <= kMostElements) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a list must have from 0 to ", kMostElements, " elements, not ", size));
}

absl::StatusOr<DataType> ReadElementType(const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetType(node, "element_dtype"));
  // A dtype without elements is found here.
  OPTFARM_RETURN_IF_ERROR(Tensor::Allocate(dtype, Shape{0}).status());
  return dtype;
}

absl::StatusOr<Tensor> RowsOf(const Tensor& tensor, int64_t row,
                              int64_t count) {
  std::vector<int64_t> dims(tensor.shape().dims().begin(),
                            tensor.shape().dims().end());
  dims.front() = count;
  if (count < 0) dims.erase(dims.begin());
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(tensor.dtype(), shape));
  const int64_t elements = shape.num_elements();
  if (elements == 0) return out;
  const int64_t first = tensor.num_elements() / tensor.dim(0) * row;
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(tensor.dtype(), "tensor", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        std::copy_n(tensor.data<T>() + first, elements, out.data<T>());
        return absl::OkStatus();
      }));
  return out;
}

}  // namespace optfarm::runtime
