// TensorArray in its three versions. They differ in what a handle is and in
// whether a flow value orders them, which is the graph's affair: one kernel
// serves all three.

#include "engine/runtime/core/tensor_array.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/state/handles.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<TensorArray*> ArrayOf(const KernelContext& context) {
  return ResourceOf<TensorArray>(context, 0, "tensor array");
}

absl::StatusOr<graph::PartialShape> ShapeAttr(const tensorflow::NodeDef& node,
                                              const std::string& name) {
  const auto it = node.attr().find(name);
  if (it == node.attr().end()) return graph::PartialShape();
  return graph::PartialShape::FromProto(it->second.shape());
}

// The flow only orders; its value means nothing.
void SetFlow(KernelContext* context, int output) {
  context->SetOutput(output, Tensor::Scalar<float>(0.0f));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeArray(
    const tensorflow::NodeDef& node) {
  TensorArrayOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.dtype, graph::GetType(node, "dtype"));
  OPTFARM_ASSIGN_OR_RETURN(options.element_shape,
                           ShapeAttr(node, "element_shape"));
  OPTFARM_ASSIGN_OR_RETURN(options.is_dynamic,
                           graph::GetBoolOr(node, "dynamic_size", false));
  OPTFARM_ASSIGN_OR_RETURN(options.clear_after_read,
                           graph::GetBoolOr(node, "clear_after_read", true));
  OPTFARM_ASSIGN_OR_RETURN(
      options.has_identical_shapes,
      graph::GetBoolOr(node, "identical_element_shapes", false));
  return MakeKernel([options](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t size,
                             ReadInteger(context->input(0), "size"));
    if (size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'size' must not be negative, got ", size));
    }
    context->SetOutput(
        0, MakeHandle(std::make_shared<TensorArray>(options, size)));
    if (context->num_outputs() > 1) SetFlow(context, 1);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWrite(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    OPTFARM_ASSIGN_OR_RETURN(TensorArray * array, ArrayOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t index,
                             ReadInteger(context->input(1), "index"));
    OPTFARM_RETURN_IF_ERROR(array->Write(index, context->input(2)));
    SetFlow(context, 0);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRead(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(TensorArray * array, ArrayOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t index,
                             ReadInteger(context->input(1), "index"));
    OPTFARM_ASSIGN_OR_RETURN(Tensor value, array->Read(index));
    context->SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

// Copies whole tensors one behind the other.
absl::Status Append(const std::vector<Tensor>& parts, Tensor* out) {
  return VisitBySize(out->dtype(), "value", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    T* to = out->data<T>();
    for (const Tensor& part : parts) {
      to = std::copy_n(part.data<T>(), part.num_elements(), to);
    }
    return absl::OkStatus();
  });
}

// The parts below one new first dimension.
absl::Status StackParts(const TensorArray& array,
                        const graph::PartialShape& shape_attr,
                        const std::vector<Tensor>& parts,
                        KernelContext* context) {
  std::vector<int64_t> dims = {static_cast<int64_t>(parts.size())};
  if (parts.empty()) {
    const graph::PartialShape known =
        shape_attr.is_static() ? shape_attr : array.element_shape();
    if (!known.is_static()) {
      return absl::InvalidArgumentError(
          "no elements are to be stacked, and their shape is not known");
    }
    dims.insert(dims.end(), known.dims().begin(), known.dims().end());
  } else {
    const auto element = parts[0].shape().dims();
    dims.insert(dims.end(), element.begin(), element.end());
  }
  for (const Tensor& part : parts) {
    if (!(part.shape() == parts[0].shape())) {
      return absl::InvalidArgumentError(
          absl::StrCat("elements of shapes ", parts[0].shape().ToString(),
                       " and ", part.shape().ToString(), " cannot be stacked"));
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, array.dtype(), shape));
  return shape.num_elements() == 0 ? absl::OkStatus() : Append(parts, out);
}

absl::StatusOr<std::vector<Tensor>> ReadAll(TensorArray* array) {
  std::vector<Tensor> parts;
  const int64_t size = array->size();
  for (int64_t i = 0; i < size; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(Tensor part, array->Read(i));
    parts.push_back(std::move(part));
  }
  return parts;
}

// Gather takes the elements that `indices` name, the first version's Pack all.
absl::StatusOr<std::unique_ptr<Kernel>> MakeGather(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape shape,
                           ShapeAttr(node, "element_shape"));
  return MakeKernel([shape](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(TensorArray * array, ArrayOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> indices,
                             context->input(1).AsInt64s());
    std::vector<Tensor> parts;
    for (int64_t index : indices) {
      OPTFARM_ASSIGN_OR_RETURN(Tensor part, array->Read(index));
      parts.push_back(std::move(part));
    }
    return StackParts(*array, shape, parts, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePack(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape shape,
                           ShapeAttr(node, "element_shape"));
  return MakeKernel([shape](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(TensorArray * array, ArrayOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> parts, ReadAll(array));
    return StackParts(*array, shape, parts, context);
  });
}

// Rows [begin, begin + shape.dim(0)) of a value, in the shape.
absl::StatusOr<Tensor> CopyRows(const Tensor& value, int64_t begin, int64_t row,
                                const Shape& shape) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor part, Tensor::Allocate(value.dtype(), shape));
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(value.dtype(), "value", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        std::copy_n(value.data<T>() + begin * row, shape.num_elements(),
                    part.data<T>());
        return absl::OkStatus();
      }));
  return part;
}

// Row i of the value becomes element indices[i].
absl::Status ScatterRows(const Tensor& value,
                         const std::vector<int64_t>& indices,
                         TensorArray* array) {
  if (value.rank() < 1 ||
      value.dim(0) != static_cast<int64_t>(indices.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(indices.size(), " elements are to be made of a value of ",
                     "shape ", value.shape().ToString()));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::FromDims(value.shape().dims().subspan(1)));
  for (size_t i = 0; i < indices.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor part,
        CopyRows(value, static_cast<int64_t>(i), shape.num_elements(), shape));
    OPTFARM_RETURN_IF_ERROR(array->Write(indices[i], std::move(part)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeScatter(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    OPTFARM_ASSIGN_OR_RETURN(TensorArray * array, ArrayOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> indices,
                             context->input(1).AsInt64s());
    OPTFARM_RETURN_IF_ERROR(ScatterRows(context->input(2), indices, array));
    SetFlow(context, 0);
    return absl::OkStatus();
  });
}

absl::Status RequireSize(const TensorArray& array, int64_t count) {
  if (array.is_dynamic() || array.size() == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(count, " elements do not fill a tensor array of ",
                   array.size(), " that does not grow"));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeUnpack(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(TensorArray * array, ArrayOf(*context));
    const Tensor& value = context->input(1);
    if (value.rank() < 1) {
      return absl::InvalidArgumentError("a scalar cannot be unpacked");
    }
    OPTFARM_RETURN_IF_ERROR(RequireSize(*array, value.dim(0)));
    // Empty rows cost nothing to claim: their number is not to be trusted.
    if (value.num_elements() == 0 && value.dim(0) > (int64_t{1} << 24)) {
      return absl::InvalidArgumentError("too many empty elements");
    }
    std::vector<int64_t> indices(value.dim(0));
    std::iota(indices.begin(), indices.end(), 0);
    OPTFARM_RETURN_IF_ERROR(ScatterRows(value, indices, array));
    SetFlow(context, 0);
    return absl::OkStatus();
  });
}

// Dims of element 0 behind the first one must be everybody's.
absl::StatusOr<std::vector<int64_t>> ConcatDims(
    const std::vector<Tensor>& parts) {
  int64_t rows = 0;
  for (const Tensor& part : parts) {
    if (part.rank() < 1 ||
        part.shape().dims().subspan(1) != parts[0].shape().dims().subspan(1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "elements of shapes ", parts[0].shape().ToString(), " and ",
          part.shape().ToString(), " cannot be concatenated"));
    }
    if (__builtin_add_overflow(rows, part.dim(0), &rows)) {
      return absl::InvalidArgumentError("too many rows to concatenate");
    }
  }
  std::vector<int64_t> dims = {rows};
  const auto rest = parts[0].shape().dims().subspan(1);
  dims.insert(dims.end(), rest.begin(), rest.end());
  return dims;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConcat(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape rest,
                           ShapeAttr(node, "element_shape_except0"));
  return MakeKernel([rest](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(TensorArray * array, ArrayOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> parts, ReadAll(array));
    std::vector<int64_t> dims = {0};
    if (!parts.empty()) {
      OPTFARM_ASSIGN_OR_RETURN(dims, ConcatDims(parts));
    } else if (rest.is_static()) {
      dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
    } else {
      return absl::InvalidArgumentError(
          "no elements are to be concatenated, and their shape is not known");
    }
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, array->dtype(), shape));
    if (shape.num_elements() > 0) OPTFARM_RETURN_IF_ERROR(Append(parts, out));
    std::vector<int64_t> lengths;
    for (const Tensor& part : parts) lengths.push_back(part.dim(0));
    context->SetOutput(1, Tensor::FromValues<int64_t>(
                              {static_cast<int64_t>(lengths.size())}, lengths));
    return absl::OkStatus();
  });
}

absl::Status SplitRows(const Tensor& value, const std::vector<int64_t>& lengths,
                       TensorArray* array) {
  if (value.rank() < 1) {
    return absl::InvalidArgumentError("a scalar cannot be split");
  }
  int64_t rest = value.dim(0);
  for (int64_t length : lengths) {
    if (length < 0 || length > rest) rest = -1;
    if (rest < 0) break;
    rest -= length;
  }
  if (rest != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'lengths' do not add up to the ", value.dim(0), " rows of the value"));
  }
  const int64_t row = DimProduct(value.shape(), 1, value.rank());
  int64_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                             WithDim(value.shape(), 0, lengths[i]));
    OPTFARM_ASSIGN_OR_RETURN(Tensor part, CopyRows(value, begin, row, shape));
    OPTFARM_RETURN_IF_ERROR(
        array->Write(static_cast<int64_t>(i), std::move(part)));
    begin += lengths[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSplit(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    OPTFARM_ASSIGN_OR_RETURN(TensorArray * array, ArrayOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                             context->input(2).AsInt64s());
    OPTFARM_RETURN_IF_ERROR(
        RequireSize(*array, static_cast<int64_t>(lengths.size())));
    OPTFARM_RETURN_IF_ERROR(SplitRows(context->input(1), lengths, array));
    SetFlow(context, 0);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSize(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(TensorArray * array, ArrayOf(*context));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 1));
    context->SetOutput(
        0, Tensor::Scalar<int32_t>(static_cast<int32_t>(array->size())));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeClose(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(TensorArray * array, ArrayOf(*context));
    return array->Close();
  });
}

}  // namespace

void AddTensorArrayKernels(KernelCatalog* catalog) {
  catalog->Add("TensorArray", MakeArray, /*is_pure=*/false);
  catalog->Add("TensorArrayV2", MakeArray, /*is_pure=*/false);
  catalog->Add("TensorArrayV3", MakeArray, /*is_pure=*/false);
  catalog->Add("TensorArrayWrite", MakeWrite, /*is_pure=*/false);
  catalog->Add("TensorArrayWriteV2", MakeWrite, /*is_pure=*/false);
  catalog->Add("TensorArrayWriteV3", MakeWrite, /*is_pure=*/false);
  catalog->Add("TensorArrayRead", MakeRead, /*is_pure=*/false);
  catalog->Add("TensorArrayReadV2", MakeRead, /*is_pure=*/false);
  catalog->Add("TensorArrayReadV3", MakeRead, /*is_pure=*/false);
  catalog->Add("TensorArrayGather", MakeGather, /*is_pure=*/false);
  catalog->Add("TensorArrayGatherV2", MakeGather, /*is_pure=*/false);
  catalog->Add("TensorArrayGatherV3", MakeGather, /*is_pure=*/false);
  catalog->Add("TensorArrayScatter", MakeScatter, /*is_pure=*/false);
  catalog->Add("TensorArrayScatterV2", MakeScatter, /*is_pure=*/false);
  catalog->Add("TensorArrayScatterV3", MakeScatter, /*is_pure=*/false);
  catalog->Add("TensorArrayConcat", MakeConcat, /*is_pure=*/false);
  catalog->Add("TensorArrayConcatV2", MakeConcat, /*is_pure=*/false);
  catalog->Add("TensorArrayConcatV3", MakeConcat, /*is_pure=*/false);
  catalog->Add("TensorArraySplit", MakeSplit, /*is_pure=*/false);
  catalog->Add("TensorArraySplitV2", MakeSplit, /*is_pure=*/false);
  catalog->Add("TensorArraySplitV3", MakeSplit, /*is_pure=*/false);
  catalog->Add("TensorArraySize", MakeSize, /*is_pure=*/false);
  catalog->Add("TensorArraySizeV2", MakeSize, /*is_pure=*/false);
  catalog->Add("TensorArraySizeV3", MakeSize, /*is_pure=*/false);
  catalog->Add("TensorArrayClose", MakeClose, /*is_pure=*/false);
  catalog->Add("TensorArrayCloseV2", MakeClose, /*is_pure=*/false);
  catalog->Add("TensorArrayCloseV3", MakeClose, /*is_pure=*/false);
  catalog->Add("TensorArrayPack", MakePack, /*is_pure=*/false);
  catalog->Add("TensorArrayUnpack", MakeUnpack, /*is_pure=*/false);
}

}  // namespace optfarm::runtime
