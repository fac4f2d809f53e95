// ArgMax and ArgMin (the first of equal elements wins), and TopK.

#include <algorithm>
#include <limits>
#include <numeric>
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

// The input as outer x size x inner around the axis.
template <typename T, typename Index, bool kIsMax>
void FindExtremes(const T* in, int64_t outer, int64_t size, int64_t inner,
                  Index* out) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const T* from = in + o * size * inner + i;
      int64_t best = 0;
      for (int64_t k = 1; k < size; ++k) {
        const bool is_better = kIsMax ? from[best * inner] < from[k * inner]
                                      : from[k * inner] < from[best * inner];
        if (is_better) best = k;
      }
      out[o * inner + i] = static_cast<Index>(best);
    }
  }
}

template <bool kIsMax>
absl::Status ComputeArg(DataType index_type, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& input = context->input(0);
  OPTFARM_ASSIGN_OR_RETURN(
      const int axis, ReadAxis(context->input(1), "dimension", input.rank()));
  const int64_t size = input.dim(axis);
  std::vector<int64_t> dims(input.shape().dims().begin(),
                            input.shape().dims().end());
  dims.erase(dims.begin() + axis);
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, index_type, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  if (size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimension ", axis, " of ", input.shape().ToString(),
                     " is empty: there is no largest or smallest element"));
  }
  const int64_t outer = DimProduct(input.shape(), 0, axis);
  const int64_t inner = DimProduct(input.shape(), axis + 1, input.rank());
  return VisitNumber(input.dtype(), "input", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* in = input.data<T>();
    if (index_type == tensorflow::DT_INT32) {
      FindExtremes<T, int32_t, kIsMax>(in, outer, size, inner,
                                       out->data<int32_t>());
    } else {
      FindExtremes<T, int64_t, kIsMax>(in, outer, size, inner,
                                       out->data<int64_t>());
    }
    return absl::OkStatus();
  });
}

template <bool kIsMax>
absl::StatusOr<std::unique_ptr<Kernel>> MakeArg(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "output_type", {tensorflow::DT_INT32, tensorflow::DT_INT64}));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType index_type,
      graph::GetTypeOr(node, "output_type", tensorflow::DT_INT64));
  return MakeKernel([index_type](KernelContext* context) {
    return ComputeArg<kIsMax>(index_type, context);
  });
}

// The k largest of each row, largest first; of equals the lower index first.
template <typename T>
void FindTopRow(const T* in, int64_t size, int64_t k,
                std::vector<int32_t>* order, T* values, int32_t* indices) {
  order->resize(size);
  std::iota(order->begin(), order->end(), 0);
  std::partial_sort(order->begin(), order->begin() + k, order->end(),
                    [in](int32_t a, int32_t b) {
                      if (in[b] < in[a]) return true;
                      if (in[a] < in[b]) return false;
                      return a < b;
                    });
  for (int64_t i = 0; i < k; ++i) {
    indices[i] = (*order)[i];
    values[i] = in[(*order)[i]];
  }
}

absl::Status ComputeTopK(int64_t k, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
  const Tensor& input = context->input(0);
  const int last = input.rank() - 1;
  if (last < 0 || k < 0 || k > input.dim(last) ||
      input.dim(last) > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", k, " largest of each row of shape ",
                     input.shape().ToString(), " do not exist"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, WithDim(input.shape(), last, k));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * values,
                           context->AllocateOutput(0, input.dtype(), shape));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * indices,
      context->AllocateOutput(1, tensorflow::DT_INT32, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t size = input.dim(last);
  return VisitNumber(input.dtype(), "input", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    std::vector<int32_t> order;
    for (int64_t r = 0; r < shape.num_elements() / k; ++r) {
      FindTopRow(input.data<T>() + r * size, size, k, &order,
                 values->data<T>() + r * k, indices->data<int32_t>() + r * k);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTopK(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t k, graph::GetInt(node, "k"));
  return MakeKernel([k](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    return ComputeTopK(k, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTopKV2(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t k,
                             ReadInteger(context->input(1), "k"));
    return ComputeTopK(k, context);
  });
}

}  // namespace

void AddArgMaxKernels(KernelCatalog* catalog) {
  catalog->Add("ArgMax", MakeArg<true>);
  catalog->Add("ArgMin", MakeArg<false>);
  catalog->Add("TopK", MakeTopK);
  catalog->Add("TopKV2", MakeTopKV2);
}

}  // namespace optfarm::runtime
