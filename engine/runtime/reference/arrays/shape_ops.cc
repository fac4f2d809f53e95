// Ops about shapes rather than elements: asking for a shape, giving a tensor
// another one without moving an element, and filling one.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// A tensor of integers as int32 or int64.
absl::StatusOr<Tensor> IntegerTensor(const Shape& shape,
                                     absl::Span<const int64_t> values,
                                     DataType dtype) {
  if (dtype == tensorflow::DT_INT64) {
    return Tensor::FromValues<int64_t>(shape, values);
  }
  std::vector<int32_t> narrow;
  for (int64_t value : values) {
    if (value > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(value, " does not fit into int32"));
    }
    narrow.push_back(static_cast<int32_t>(value));
  }
  return Tensor::FromValues<int32_t>(shape, narrow);
}

absl::StatusOr<DataType> ReadOutType(const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "out_type", {tensorflow::DT_INT32, tensorflow::DT_INT64}));
  return graph::GetTypeOr(node, "out_type", tensorflow::DT_INT32);
}

absl::StatusOr<Tensor> ShapeOf(const Tensor& input, DataType dtype) {
  return IntegerTensor(Shape{input.rank()}, input.shape().dims(), dtype);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeShape(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, ReadOutType(node));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, context->num_inputs()));
    for (int i = 0; i < context->num_inputs(); ++i) {
      OPTFARM_ASSIGN_OR_RETURN(Tensor shape, ShapeOf(context->input(i), dtype));
      context->SetOutput(i, std::move(shape));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSize(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, ReadOutType(node));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const int64_t size = context->input(0).num_elements();
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, IntegerTensor({}, {&size, 1}, dtype));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRank(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    context->SetOutput(0, Tensor::Scalar<int32_t>(context->input(0).rank()));
    return absl::OkStatus();
  });
}

// The product of all dimensions that are not 0; checked by whoever made them.
int64_t NonZeroProduct(absl::Span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim == 0 ? 1 : dim;
  return product;
}

// The shape that `dims` ask of `input`; one of them may be -1. Where one of
// the others is 0, the dimensions that are not 0 decide what -1 stands for.
absl::StatusOr<Shape> ResolveReshape(const Tensor& input,
                                     std::vector<int64_t> dims) {
  const std::string asked = absl::StrJoin(dims, ",");
  const auto unknown = std::find(dims.begin(), dims.end(), -1);
  if (std::count(dims.begin(), dims.end(), -1) > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape [", asked, "] has more than one -1"));
  }
  if (unknown != dims.end()) *unknown = 1;
  OPTFARM_ASSIGN_OR_RETURN(const Shape known, Shape::FromDims(dims));
  if (unknown != dims.end()) {
    *unknown = known.num_elements() == 0
                   ? NonZeroProduct(input.shape().dims()) /
                         NonZeroProduct(known.dims())
                   : input.num_elements() / known.num_elements();
  }
  OPTFARM_ASSIGN_OR_RETURN(Shape shape, Shape::FromDims(dims));
  if (shape.num_elements() != input.num_elements()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a tensor of shape ", input.shape().ToString(), " with ",
        input.num_elements(), " elements cannot become [", asked, "]"));
  }
  return shape;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReshape(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& tensor = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                             ReadIntegers(context->input(1), "shape"));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             ResolveReshape(tensor, std::move(dims)));
    context->SetOutput(0, tensor.Reshaped(shape));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<int64_t>> ReadSqueezeDims(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                           graph::GetIntsOr(node, "squeeze_dims", {}));
  if (!dims.empty()) return dims;
  return graph::GetIntsOr(node, "axis", {});
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSqueeze(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                           ReadSqueezeDims(node));
  return MakeKernel([axes](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& input = context->input(0);
    std::vector<bool> goes(input.rank(), false);
    for (int64_t value : axes) {
      OPTFARM_ASSIGN_OR_RETURN(const int axis,
                               NormalizeAxis(value, input.rank()));
      if (input.dim(axis) != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("dimension ", axis, " of ", input.shape().ToString(),
                         " cannot be squeezed: its size is not 1"));
      }
      goes[axis] = true;
    }
    std::vector<int64_t> dims;
    for (int i = 0; i < input.rank(); ++i) {
      const bool is_dropped = axes.empty() ? input.dim(i) == 1 : goes[i];
      if (!is_dropped) dims.push_back(input.dim(i));
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    context->SetOutput(0, input.Reshaped(shape));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeExpandDims(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        const int axis, ReadAxis(context->input(1), "dim", input.rank() + 1));
    std::vector<int64_t> dims(input.shape().dims().begin(),
                              input.shape().dims().end());
    dims.insert(dims.begin() + axis, 1);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    context->SetOutput(0, input.Reshaped(shape));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFill(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& value = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(value, "value"));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                             ReadIntegers(context->input(0), "dims"));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, value.dtype(), shape));
    return VisitBySize(value.dtype(), "value", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::fill_n(out->data<T>(), out->num_elements(), *value.data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeZerosLike(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(x.dtype(), x.shape()));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeOnesLike(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T",
      {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT8,
       tensorflow::DT_INT16, tensorflow::DT_INT32, tensorflow::DT_INT64,
       tensorflow::DT_UINT8, tensorflow::DT_UINT16, tensorflow::DT_UINT32,
       tensorflow::DT_UINT64, tensorflow::DT_COMPLEX64,
       tensorflow::DT_COMPLEX128, tensorflow::DT_BOOL}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, x.dtype(), x.shape()));
    if (x.dtype() == tensorflow::DT_BOOL) {
      std::fill_n(out->data<bool>(), out->num_elements(), true);
      return absl::OkStatus();
    }
    return VisitNumberOrComplex(x.dtype(), "x", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::fill_n(out->data<T>(), out->num_elements(), T(1));
      return absl::OkStatus();
    });
  });
}

// How many elements [start, limit) has in steps of delta. Integers are counted
// without overflow, floats as TensorFlow counts them.
template <typename T>
absl::StatusOr<int64_t> RangeSize(T start, T limit, T delta) {
  if (!(delta != T(0))) {
    return absl::InvalidArgumentError("'delta' must not be 0");
  }
  if (delta > T(0) ? start > limit : start < limit) {
    return absl::InvalidArgumentError(
        absl::StrCat("a range from ", start, " to ", limit, " in steps of ",
                     delta, " never ends"));
  }
  if constexpr (std::is_integral_v<T>) {
    const uint64_t lo = static_cast<uint64_t>(static_cast<int64_t>(start));
    const uint64_t hi = static_cast<uint64_t>(static_cast<int64_t>(limit));
    const uint64_t step = static_cast<uint64_t>(static_cast<int64_t>(delta));
    const uint64_t span = delta > T(0) ? hi - lo : lo - hi;
    const uint64_t size = delta > T(0) ? step : uint64_t{0} - step;
    return static_cast<int64_t>(span / size + (span % size != 0 ? 1 : 0));
  } else {
    const double size = std::ceil(std::abs((limit - start) / delta));
    if (!(size < 1e15)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a range of ", size, " elements is too large"));
    }
    return static_cast<int64_t>(size);
  }
}

template <typename T>
absl::Status ComputeRange(KernelContext* context) {
  const T start = *context->input(0).data<T>();
  const T limit = *context->input(1).data<T>();
  const T delta = *context->input(2).data<T>();
  OPTFARM_ASSIGN_OR_RETURN(const int64_t size, RangeSize(start, limit, delta));
  const int64_t dims[] = {size};
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out, context->AllocateOutput(0, DataTypeOf<T>::kValue, shape));
  // The value after the last one may overflow: it is not computed.
  T value = start;
  for (int64_t i = 0; i < size; ++i) {
    out->data<T>()[i] = value;
    if (i + 1 < size) value = static_cast<T>(value + delta);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRange(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "Tidx",
                      {tensorflow::DT_INT32, tensorflow::DT_INT64,
                       tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE}));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const DataType dtype = context->input(0).dtype();
    for (int i = 0; i < 3; ++i) {
      constexpr absl::string_view kNames[] = {"start", "limit", "delta"};
      OPTFARM_RETURN_IF_ERROR(RequireOneElement(context->input(i), kNames[i]));
      OPTFARM_RETURN_IF_ERROR(
          RequireDtype(context->input(i), kNames[i], dtype));
    }
    switch (dtype) {
      case tensorflow::DT_INT32:
        return ComputeRange<int32_t>(context);
      case tensorflow::DT_INT64:
        return ComputeRange<int64_t>(context);
      case tensorflow::DT_FLOAT:
        return ComputeRange<float>(context);
      case tensorflow::DT_DOUBLE:
        return ComputeRange<double>(context);
      default:
        return UnsupportedDtype("start", dtype);
    }
  });
}

}  // namespace

void AddShapeKernels(KernelCatalog* catalog) {
  catalog->Add("Shape", MakeShape);
  catalog->Add("ShapeN", MakeShape);
  catalog->Add("Size", MakeSize);
  catalog->Add("Rank", MakeRank);
  catalog->Add("Reshape", MakeReshape);
  catalog->Add("Squeeze", MakeSqueeze);
  catalog->Add("ExpandDims", MakeExpandDims);
  catalog->Add("Fill", MakeFill);
  catalog->Add("ZerosLike", MakeZerosLike);
  catalog->Add("OnesLike", MakeOnesLike);
  catalog->Add("Range", MakeRange);
}

}  // namespace optfarm::runtime
