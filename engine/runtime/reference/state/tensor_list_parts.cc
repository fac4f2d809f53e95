// Lists of tensors made of a tensor's parts, and joined again.

#include <algorithm>
#include <numeric>
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

// What a joined list is made of.
struct Joined {
  // Without the first dimension.
  std::vector<int64_t> rest;
  // Of each element.
  std::vector<int64_t> lengths;
  Shape shape;
};

graph::PartialShape WithoutFirst(const graph::PartialShape& shape) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  if (!dims.empty()) dims.front() = graph::kUnknownDim;
  return graph::PartialShape(dims);
}

// The elements' shape with `sum` as its first dimension.
absl::StatusOr<Shape> JoinedShape(const graph::PartialShape& rest,
                                  int64_t sum) {
  std::vector<int64_t> dims(rest.dims().begin(), rest.dims().end());
  if (!rest.has_rank() || dims.empty()) {
    return absl::InvalidArgumentError(
        "the list has no element with a known shape to be joined");
  }
  dims.front() = sum;
  if (std::any_of(dims.begin(), dims.end(),
                  [](int64_t dim) { return dim < 0; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("all dimensions but the first must be known, the list's "
                     "elements are of shape ",
                     rest.ToString()));
  }
  return Shape::FromDims(dims);
}

// `leading` are the first dimensions of elements that were never set, or
// nothing: then `said` tells.
absl::StatusOr<Joined> MeasureJoined(const TensorList& list,
                                     const graph::PartialShape& said,
                                     const std::vector<int64_t>& leading) {
  OPTFARM_ASSIGN_OR_RETURN(graph::PartialShape rest,
                           graph::MergeShapes(list.element_shape, said));
  const int64_t common = rest.has_rank() && !rest.dims().empty()
                             ? rest.dims().front()
                             : graph::kUnknownDim;
  if (rest.has_rank()) rest = WithoutFirst(rest);
  Joined joined;
  int64_t sum = 0;
  for (int64_t i = 0; i < list.size(); ++i) {
    const Tensor& element = list.elements[static_cast<size_t>(i)];
    int64_t length = i < static_cast<int64_t>(leading.size())
                         ? leading[static_cast<size_t>(i)]
                         : common;
    if (element.has_value()) {
      if (element.rank() < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("element ", i, " is a scalar and cannot be joined"));
      }
      length = element.dim(0);
      OPTFARM_ASSIGN_OR_RETURN(
          rest, graph::MergeShapes(
                    rest, WithoutFirst(ToPartialShape(element.shape()))));
    }
    if (length < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "element ", i, " was never set and has no known first dimension"));
    }
    joined.lengths.push_back(length);
    if (__builtin_add_overflow(sum, length, &sum)) {
      return absl::InvalidArgumentError("the joined elements are too many");
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(joined.shape, JoinedShape(rest, sum));
  return joined;
}

absl::Status Join(const TensorList& list, const graph::PartialShape& said,
                  const std::vector<int64_t>& leading, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
  OPTFARM_ASSIGN_OR_RETURN(const Joined joined,
                           MeasureJoined(list, said, leading));
  const Shape& shape = joined.shape;
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, list.dtype, shape));
  const int64_t row =
      std::accumulate(shape.dims().begin() + 1, shape.dims().end(), int64_t{1},
                      [](int64_t a, int64_t b) { return a * b; });
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(list.dtype, "elements", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        T* to = out->data<T>();
        for (size_t i = 0; i < joined.lengths.size(); ++i) {
          const Tensor& element = list.elements[i];
          const int64_t count = joined.lengths[i] * row;
          if (element.has_value()) {
            std::copy_n(element.data<T>(), count, to);
          } else {
            std::fill_n(to, count, T());
          }
          to += count;
        }
        return absl::OkStatus();
      }));
  context->SetOutput(
      1, Tensor::FromValues<int64_t>({list.size()}, joined.lengths));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConcat(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(ReadElementType(node).status());
  graph::PartialShape said;
  const tensorflow::AttrValue* attr = graph::FindAttr(node, "element_shape");
  if (attr != nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(said,
                             graph::PartialShape::FromProto(attr->shape()));
  }
  return MakeKernel([said](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const TensorList* list, ListOf(*context));
    return Join(*list, said, {}, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConcatV2(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(ReadElementType(node).status());
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(const TensorList* list, ListOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape said,
                             ReadElementShape(context->input(1)));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> leading,
                             ReadIntegers(context->input(2), "leading_dims"));
    return Join(*list, said, leading, context);
  });
}

absl::StatusOr<std::shared_ptr<TensorList>> NewList(
    DataType dtype, const Tensor& tensor, const Tensor& element_shape) {
  OPTFARM_RETURN_IF_ERROR(RequireDtype(tensor, "tensor", dtype));
  if (tensor.rank() < 1) {
    return absl::InvalidArgumentError("'tensor' must not be a scalar");
  }
  auto list = std::make_shared<TensorList>();
  list->dtype = dtype;
  OPTFARM_ASSIGN_OR_RETURN(list->element_shape,
                           ReadElementShape(element_shape));
  return list;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSplit(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, ReadElementType(node));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& tensor = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(auto list,
                             NewList(dtype, tensor, context->input(1)));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                             ReadIntegers(context->input(2), "lengths"));
    OPTFARM_RETURN_IF_ERROR(
        CheckListSize(static_cast<int64_t>(lengths.size())));
    int64_t row = 0;
    for (const int64_t length : lengths) {
      if (length < 0 || length > tensor.dim(0) - row) {
        return absl::InvalidArgumentError(
            absl::StrCat("a length of ", length, " does not fit the ",
                         tensor.dim(0) - row, " rows that are left"));
      }
      OPTFARM_ASSIGN_OR_RETURN(Tensor part, RowsOf(tensor, row, length));
      OPTFARM_RETURN_IF_ERROR(CheckElement(*list, part));
      list->elements.push_back(std::move(part));
      row += length;
    }
    if (row != tensor.dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'lengths' cover ", row, " of ", tensor.dim(0),
                       " rows; they must cover all"));
    }
    context->SetOutput(0, HandleOf(std::move(list)));
    return absl::OkStatus();
  });
}

// Row by row to where the indices say; the list grows as far as they go.
absl::Status Scatter(const Tensor& tensor, const Tensor& indices,
                     TensorList* list) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> places,
                           ReadIntegers(indices, "indices"));
  if (tensor.rank() < 1 ||
      tensor.dim(0) != static_cast<int64_t>(places.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("'tensor' of shape ", tensor.shape().ToString(),
                     " needs a row for each of ", places.size(), " indices"));
  }
  int64_t size = list->size();
  for (const int64_t place : places) {
    OPTFARM_RETURN_IF_ERROR(CheckListSize(place));
    size = std::max(size, place + 1);
  }
  OPTFARM_RETURN_IF_ERROR(CheckListSize(size));
  list->elements.resize(static_cast<size_t>(size));
  for (size_t i = 0; i < places.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(Tensor row,
                             RowsOf(tensor, static_cast<int64_t>(i)));
    if (i == 0) OPTFARM_RETURN_IF_ERROR(CheckElement(*list, row));
    list->elements[static_cast<size_t>(places[i])] = std::move(row);
  }
  return absl::OkStatus();
}

template <bool kSaysSize>
absl::StatusOr<std::unique_ptr<Kernel>> MakeScatter(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, ReadElementType(node));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, kSaysSize ? 4 : 3));
    OPTFARM_ASSIGN_OR_RETURN(
        auto list, NewList(dtype, context->input(0), context->input(2)));
    int64_t size = -1;
    if (kSaysSize) {
      OPTFARM_ASSIGN_OR_RETURN(size,
                               ReadInteger(context->input(3), "num_elements"));
    }
    if (size >= 0) {
      OPTFARM_RETURN_IF_ERROR(CheckListSize(size));
      list->elements.resize(static_cast<size_t>(size));
    }
    OPTFARM_RETURN_IF_ERROR(
        Scatter(context->input(0), context->input(1), list.get()));
    if (size >= 0 && list->size() != size) {
      return absl::InvalidArgumentError(
          absl::StrCat("'indices' go up to ", list->size() - 1,
                       ", the list is to have ", size, " elements"));
    }
    context->SetOutput(0, HandleOf(std::move(list)));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeScatterIntoExisting(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, ReadElementType(node));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_RETURN_IF_ERROR(RequireDtype(context->input(1), "tensor", dtype));
    OPTFARM_ASSIGN_OR_RETURN(TensorList * list, ChangeableList(context));
    return Scatter(context->input(1), context->input(2), list);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConcatLists(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(ReadElementType(node).status());
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(const TensorList* first, ListOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const TensorList* second, ListOf(*context, 1));
    auto list = std::make_shared<TensorList>(*first);
    OPTFARM_RETURN_IF_ERROR(CheckListSize(first->size() + second->size()));
    for (const Tensor& element : second->elements) {
      if (element.has_value()) {
        OPTFARM_RETURN_IF_ERROR(CheckElement(*list, element));
      }
      list->elements.push_back(element);
    }
    context->SetOutput(0, HandleOf(std::move(list)));
    return absl::OkStatus();
  });
}

}  // namespace

void AddTensorListPartKernels(KernelCatalog* catalog) {
  constexpr bool kIsPure = false;
  catalog->Add("TensorListConcat", MakeConcat, kIsPure);
  catalog->Add("TensorListConcatV2", MakeConcatV2, kIsPure);
  catalog->Add("TensorListSplit", MakeSplit, kIsPure);
  catalog->Add("TensorListScatter", MakeScatter<false>, kIsPure);
  catalog->Add("TensorListScatterV2", MakeScatter<true>, kIsPure);
  catalog->Add("TensorListScatterIntoExistingList", MakeScatterIntoExisting,
               kIsPure);
  catalog->Add("TensorListConcatLists", MakeConcatLists, kIsPure);
}

}  // namespace optfarm::runtime
