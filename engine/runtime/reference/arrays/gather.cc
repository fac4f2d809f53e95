// Picking by index: Gather, GatherV2, GatherNd, OneHot.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// Whether negative indices count from the end, as in ONNX.
absl::StatusOr<bool> ReadWraps(const tensorflow::NodeDef& node) {
  return graph::GetBoolOr(node, "wraps_negative", false);
}

// The indexes, each checked to be within [0, size) once they are wrapped.
absl::StatusOr<std::vector<int64_t>> ReadIndexes(const Tensor& indices,
                                                 int64_t size, bool wraps) {
  if (indices.dtype() != tensorflow::DT_INT32 &&
      indices.dtype() != tensorflow::DT_INT64) {
    return UnsupportedDtype("indices", indices.dtype());
  }
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> values, indices.AsInt64s());
  for (size_t i = 0; i < values.size(); ++i) {
    if (wraps && values[i] < 0) values[i] += size;
    if (values[i] < 0 || values[i] >= size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "indices[", i, "] = ", values[i], " is not within [0, ", size, ")"));
    }
  }
  return values;
}

absl::Status GatherAxis(const Tensor& params, const Tensor& indices, int axis,
                        bool wraps, KernelContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> picks,
                           ReadIndexes(indices, params.dim(axis), wraps));
  std::vector<int64_t> dims;
  for (int i = 0; i < axis; ++i) dims.push_back(params.dim(i));
  for (int64_t dim : indices.shape().dims()) dims.push_back(dim);
  for (int i = axis + 1; i < params.rank(); ++i) dims.push_back(params.dim(i));
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, params.dtype(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t outer = DimProduct(params.shape(), 0, axis);
  const int64_t run = DimProduct(params.shape(), axis + 1, params.rank());
  const int64_t size = params.dim(axis);
  return VisitBySize(params.dtype(), "params", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    T* to = out->data<T>();
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t pick : picks) {
        std::copy_n(params.data<T>() + (o * size + pick) * run, run, to);
        to += run;
      }
    }
    return absl::OkStatus();
  });
}

absl::Status RequireIndexType(const tensorflow::NodeDef& node) {
  return RequireTypeAttr(node, "Tindices",
                         {tensorflow::DT_INT32, tensorflow::DT_INT64});
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGather(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireIndexType(node));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& params = context->input(0);
    if (params.rank() < 1) {
      return absl::InvalidArgumentError("'params' must not be a scalar");
    }
    return GatherAxis(params, context->input(1), 0, false, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGatherV2(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireIndexType(node));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t batch_dims,
                           graph::GetIntOr(node, "batch_dims", 0));
  if (batch_dims != 0) {
    return absl::UnimplementedError(
        absl::StrCat("GatherV2 with batch_dims=", batch_dims));
  }
  OPTFARM_ASSIGN_OR_RETURN(const bool wraps, ReadWraps(node));
  return MakeKernel([wraps](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& params = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(
        const int axis, ReadAxis(context->input(2), "axis", params.rank()));
    return GatherAxis(params, context->input(1), axis, wraps, context);
  });
}

// Where each index vector of `indices` points, in units of one slice.
absl::StatusOr<std::vector<int64_t>> SliceNumbers(const Tensor& params,
                                                  const Tensor& indices,
                                                  int depth, bool wraps) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                           indices.AsInt64s());
  const int64_t count = DimProduct(indices.shape(), 0, indices.rank() - 1);
  std::vector<int64_t> numbers(count, 0);
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < depth; ++k) {
      int64_t index = values[i * depth + k];
      if (wraps && index < 0) index += params.dim(k);
      if (index < 0 || index >= params.dim(k)) {
        return absl::InvalidArgumentError(
            absl::StrCat("index ", index, " for dimension ", k,
                         " is not within shape ", params.shape().ToString()));
      }
      numbers[i] = numbers[i] * params.dim(k) + index;
    }
  }
  return numbers;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGatherNd(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireIndexType(node));
  OPTFARM_ASSIGN_OR_RETURN(const bool wraps, ReadWraps(node));
  return MakeKernel([wraps](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& params = context->input(0);
    const Tensor& indices = context->input(1);
    if (indices.rank() < 1 || indices.num_elements() == 0 ||
        indices.dim(indices.rank() - 1) > params.rank()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "indices of shape ", indices.shape().ToString(),
          " do not point into params of shape ", params.shape().ToString()));
    }
    const int depth = static_cast<int>(indices.dim(indices.rank() - 1));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                             SliceNumbers(params, indices, depth, wraps));
    std::vector<int64_t> dims(indices.shape().dims().begin(),
                              indices.shape().dims().end() - 1);
    for (int i = depth; i < params.rank(); ++i) dims.push_back(params.dim(i));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, params.dtype(), shape));
    const int64_t run = DimProduct(params.shape(), depth, params.rank());
    return VisitBySize(params.dtype(), "params", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (size_t i = 0; i < numbers.size(); ++i) {
        std::copy_n(params.data<T>() + numbers[i] * run, run,
                    out->data<T>() + static_cast<int64_t>(i) * run);
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeOneHot(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis_attr,
                           graph::GetIntOr(node, "axis", -1));
  return MakeKernel([axis_attr](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 4));
    const Tensor& indices = context->input(0);
    const Tensor& on = context->input(2);
    const Tensor& off = context->input(3);
    OPTFARM_ASSIGN_OR_RETURN(const int64_t depth,
                             ReadInteger(context->input(1), "depth"));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(on, "on_value"));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(off, "off_value"));
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(on, off));
    OPTFARM_ASSIGN_OR_RETURN(const int axis,
                             NormalizeAxis(axis_attr, indices.rank() + 1));
    std::vector<int64_t> dims(indices.shape().dims().begin(),
                              indices.shape().dims().end());
    dims.insert(dims.begin() + axis, depth);
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> hot,
                             indices.AsInt64s());
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, on.dtype(), shape));
    const int64_t inner = DimProduct(indices.shape(), axis, indices.rank());
    return VisitBySize(on.dtype(), "on_value", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::fill_n(out->data<T>(), shape.num_elements(), *off.data<T>());
      for (size_t i = 0; i < hot.size(); ++i) {
        // An index outside of the depth lights nothing.
        if (hot[i] < 0 || hot[i] >= depth) continue;
        const int64_t at = static_cast<int64_t>(i);
        out->data<T>()[(at / inner * depth + hot[i]) * inner + at % inner] =
            *on.data<T>();
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddGatherKernels(KernelCatalog* catalog) {
  catalog->Add("Gather", MakeGather);
  catalog->Add("GatherV2", MakeGatherV2);
  catalog->Add("GatherNd", MakeGatherNd);
  catalog->Add("OneHot", MakeOneHot);
}

}  // namespace optfarm::runtime
