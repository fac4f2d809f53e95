// TensorFlow 2's lists of tensors: what an inlined While carries where version
// 1 had a TensorArray. A list is a value: an op that changes one makes another,
// over the same memory when nobody else reads the old one.

#include "engine/runtime/reference/state/tensor_list.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

absl::Status CheckIndex(const TensorList& list, int64_t index) {
  if (index >= 0 && index < list.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no element ", index, " in a list of ", list.size()));
}

// The shape of elements that were never set: what is said here, what the list
// says, and what the others have.
absl::StatusOr<Shape> UnsetShape(const TensorList& list,
                                 const graph::PartialShape& said) {
  OPTFARM_ASSIGN_OR_RETURN(graph::PartialShape shape,
                           graph::MergeShapes(list.element_shape, said));
  for (const Tensor& element : list.elements) {
    if (!element.has_value()) continue;
    const auto dims = element.shape().dims();
    OPTFARM_ASSIGN_OR_RETURN(
        shape,
        graph::MergeShapes(shape, graph::PartialShape(std::vector<int64_t>(
                                      dims.begin(), dims.end()))));
  }
  if (shape.is_static()) return Shape::FromDims(shape.dims());
  return absl::InvalidArgumentError(
      absl::StrCat("an element that was never set has no known shape, only ",
                   shape.ToString()));
}

absl::StatusOr<Tensor> ElementAt(const TensorList& list, int64_t index,
                                 const graph::PartialShape& said) {
  OPTFARM_RETURN_IF_ERROR(CheckIndex(list, index));
  const Tensor& element = list.elements[static_cast<size_t>(index)];
  if (element.has_value()) return element;
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, UnsetShape(list, said));
  return Tensor::Zeros(list.dtype, shape);
}

template <bool kReserves>
absl::StatusOr<std::unique_ptr<Kernel>> MakeNew(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, ReadElementType(node));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    auto list = std::make_shared<TensorList>();
    list->dtype = dtype;
    OPTFARM_ASSIGN_OR_RETURN(list->element_shape,
                             ReadElementShape(context->input(0)));
    if (kReserves) {
      OPTFARM_ASSIGN_OR_RETURN(const int64_t size,
                               ReadInteger(context->input(1), "num_elements"));
      OPTFARM_RETURN_IF_ERROR(CheckListSize(size));
      list->elements.resize(static_cast<size_t>(size));
    }
    context->SetOutput(0, HandleOf(std::move(list)));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFromTensor(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, ReadElementType(node));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& tensor = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(tensor, "tensor", dtype));
    if (tensor.rank() < 1) {
      return absl::InvalidArgumentError("'tensor' must not be a scalar");
    }
    OPTFARM_RETURN_IF_ERROR(CheckListSize(tensor.dim(0)));
    auto list = std::make_shared<TensorList>();
    list->dtype = dtype;
    OPTFARM_ASSIGN_OR_RETURN(list->element_shape,
                             ReadElementShape(context->input(1)));
    for (int64_t row = 0; row < tensor.dim(0); ++row) {
      OPTFARM_ASSIGN_OR_RETURN(Tensor element, RowsOf(tensor, row));
      if (row == 0) OPTFARM_RETURN_IF_ERROR(CheckElement(*list, element));
      list->elements.push_back(std::move(element));
    }
    context->SetOutput(0, HandleOf(std::move(list)));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGetItem(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(ReadElementType(node).status());
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(const TensorList* list, ListOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t index,
                             ReadInteger(context->input(1), "index"));
    OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape said,
                             ReadElementShape(context->input(2)));
    OPTFARM_ASSIGN_OR_RETURN(Tensor item, ElementAt(*list, index, said));
    context->SetOutput(0, std::move(item));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSetItem(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(ReadElementType(node).status());
  OPTFARM_ASSIGN_OR_RETURN(
      const bool may_grow,
      graph::GetBoolOr(node, "resize_if_index_out_of_bounds", false));
  return MakeKernel([may_grow](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t index,
                             ReadInteger(context->input(1), "index"));
    OPTFARM_ASSIGN_OR_RETURN(TensorList * list, ListOf(*context));
    OPTFARM_RETURN_IF_ERROR(CheckElement(*list, context->input(2)));
    if (may_grow && index >= list->size()) {
      OPTFARM_RETURN_IF_ERROR(CheckListSize(index));
    } else {
      OPTFARM_RETURN_IF_ERROR(CheckIndex(*list, index));
    }
    OPTFARM_ASSIGN_OR_RETURN(list, ChangeableList(context));
    if (index >= list->size()) {
      list->elements.resize(static_cast<size_t>(index) + 1);
    }
    list->elements[static_cast<size_t>(index)] = context->input(2);
    return absl::OkStatus();
  });
}

// The elements one after the other, in a tensor of one more dimension.
absl::Status Stack(absl::Span<const Tensor> elements, DataType dtype,
                   const Shape& element, KernelContext* context) {
  std::vector<int64_t> dims = {static_cast<int64_t>(elements.size())};
  dims.insert(dims.end(), element.dims().begin(), element.dims().end());
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, dtype, shape));
  const int64_t count = element.num_elements();
  return VisitBySize(dtype, "elements", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    T* to = out->data<T>();
    for (const Tensor& value : elements) {
      if (value.has_value()) {
        OPTFARM_RETURN_IF_ERROR(RequireShape(value, "an element", element));
        std::copy_n(value.data<T>(), count, to);
      } else {
        std::fill_n(to, count, T());
      }
      to += count;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeStack(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(ReadElementType(node).status());
  OPTFARM_ASSIGN_OR_RETURN(const int64_t wanted,
                           graph::GetIntOr(node, "num_elements", -1));
  return MakeKernel([wanted](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(const TensorList* list, ListOf(*context));
    if (wanted >= 0 && wanted != list->size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the list has ", list->size(), " elements, not ", wanted));
    }
    OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape said,
                             ReadElementShape(context->input(1)));
    OPTFARM_ASSIGN_OR_RETURN(const Shape element, UnsetShape(*list, said));
    return Stack(list->elements, list->dtype, element, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGather(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(ReadElementType(node).status());
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(const TensorList* list, ListOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> indices,
                             context->input(1).AsInt64s());
    OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape said,
                             ReadElementShape(context->input(2)));
    std::vector<Tensor> chosen;
    for (int64_t index : indices) {
      OPTFARM_RETURN_IF_ERROR(CheckIndex(*list, index));
      chosen.push_back(list->elements[static_cast<size_t>(index)]);
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape element, UnsetShape(*list, said));
    return Stack(chosen, list->dtype, element, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePushBack(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(ReadElementType(node).status());
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(TensorList * list, ListOf(*context));
    OPTFARM_RETURN_IF_ERROR(CheckElement(*list, context->input(1)));
    OPTFARM_RETURN_IF_ERROR(CheckListSize(list->size() + 1));
    OPTFARM_ASSIGN_OR_RETURN(list, ChangeableList(context));
    list->elements.push_back(context->input(1));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePopBack(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(ReadElementType(node).status());
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(TensorList * list, ListOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape said,
                             ReadElementShape(context->input(1)));
    OPTFARM_ASSIGN_OR_RETURN(Tensor last,
                             ElementAt(*list, list->size() - 1, said));
    OPTFARM_ASSIGN_OR_RETURN(list, ChangeableList(context));
    list->elements.pop_back();
    context->SetOutput(1, std::move(last));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLength(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const TensorList* list, ListOf(*context));
    context->SetOutput(
        0, Tensor::Scalar<int32_t>(static_cast<int32_t>(list->size())));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeResize(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t size,
                             ReadInteger(context->input(1), "size"));
    OPTFARM_RETURN_IF_ERROR(CheckListSize(size));
    OPTFARM_ASSIGN_OR_RETURN(TensorList * list, ChangeableList(context));
    list->elements.resize(static_cast<size_t>(size));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeElementShape(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "shape_type", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetType(node, "shape_type"));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const TensorList* list, ListOf(*context));
    const graph::PartialShape& known = list->element_shape;
    const std::vector<int64_t> dims =
        known.has_rank()
            ? std::vector<int64_t>(known.dims().begin(), known.dims().end())
            : std::vector<int64_t>{graph::kUnknownDim};
    const Shape shape =
        known.has_rank() ? Shape{static_cast<int64_t>(dims.size())} : Shape();
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, dtype, shape));
    return VisitInteger(dtype, "shape_type", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::transform(dims.begin(), dims.end(), out->data<T>(),
                     [](int64_t dim) { return static_cast<T>(dim); });
      return absl::OkStatus();
    });
  });
}

}  // namespace

// A list is a value, so that only memory tells the ops from pure ones; but a
// handle that was folded would be written over.
void AddTensorListKernels(KernelCatalog* catalog) {
  constexpr bool kIsPure = false;
  catalog->Add("EmptyTensorList", MakeNew<false>, kIsPure);
  catalog->Add("TensorListReserve", MakeNew<true>, kIsPure);
  catalog->Add("TensorListFromTensor", MakeFromTensor, kIsPure);
  catalog->Add("TensorListGetItem", MakeGetItem, kIsPure);
  catalog->Add("TensorListSetItem", MakeSetItem, kIsPure);
  catalog->Add("TensorListStack", MakeStack, kIsPure);
  catalog->Add("TensorListGather", MakeGather, kIsPure);
  catalog->Add("TensorListPushBack", MakePushBack, kIsPure);
  catalog->Add("TensorListPopBack", MakePopBack, kIsPure);
  catalog->Add("TensorListLength", MakeLength, kIsPure);
  catalog->Add("TensorListResize", MakeResize, kIsPure);
  catalog->Add("TensorListElementShape", MakeElementShape, kIsPure);
  AddTensorListPartKernels(catalog);
}

}  // namespace optfarm::runtime
