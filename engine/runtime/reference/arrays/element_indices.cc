// One index for each element: GatherElements and ScatterElements; and GatherNd
// within each example of a batch. Indices may count from the end.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/arrays/update.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<Update> ReadReduction(const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string name,
                           graph::GetStringOr(node, "reduction", "none"));
  if (name == "none") return Update::kAssign;
  if (name == "add") return Update::kAdd;
  if (name == "mul") return Update::kMultiply;
  if (name == "min") return Update::kMin;
  if (name == "max") return Update::kMax;
  return absl::UnimplementedError(absl::StrCat(
      "reduction '", name, "' is none of none, add, mul, min and max"));
}

// How the elements of `indices` lie in `data`, which has the same rank and, but
// for the axis, no smaller dimensions.
struct ElementPlan {
  int axis = 0;
  int64_t axis_size = 0;
  int64_t axis_stride = 1;
  // Of `indices` and of `data`.
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
};

absl::StatusOr<ElementPlan> PlanElements(const Shape& data,
                                         const Shape& indices, int64_t axis) {
  if (data.rank() < 1 || data.rank() != indices.rank()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'data' of shape ", data.ToString(), " and 'indices' of shape ",
        indices.ToString(), " must have the same rank, 1 or more"));
  }
  ElementPlan plan;
  OPTFARM_ASSIGN_OR_RETURN(plan.axis, NormalizeAxis(axis, data.rank()));
  plan.axis_size = data.dim(plan.axis);
  plan.dims.assign(indices.dims().begin(), indices.dims().end());
  plan.strides.resize(data.rank());
  int64_t stride = 1;
  for (int i = data.rank() - 1; i >= 0; --i) {
    plan.strides[i] = stride;
    stride *= data.dim(i);
    if (i != plan.axis && indices.dim(i) > data.dim(i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'indices' of shape ", indices.ToString(),
                       " reaches beyond 'data' of shape ", data.ToString(),
                       " in dimension ", i));
    }
  }
  plan.axis_stride = plan.strides[plan.axis];
  plan.strides[plan.axis] = 0;
  return plan;
}

absl::Status OutOfRange(int64_t index, int64_t size) {
  return absl::InvalidArgumentError(absl::StrCat(
      "index ", index, " is not within [", -size, ", ", size, ")"));
}

// Calls body(position in data, position in indices) for every index.
template <typename Index, typename Body>
absl::Status ForEachIndex(const ElementPlan& plan, const Tensor& indices,
                          Body body) {
  const int64_t count = indices.num_elements();
  if (count == 0) return absl::OkStatus();
  const int last = static_cast<int>(plan.dims.size()) - 1;
  const int64_t row = plan.dims[last];
  const Index* index = indices.data<Index>();
  for (int64_t begin = 0; begin < count; begin += row) {
    int64_t rest = begin / row;
    int64_t at = 0;
    for (int i = last - 1; i >= 0; --i) {
      at += rest % plan.dims[i] * plan.strides[i];
      rest /= plan.dims[i];
    }
    for (int64_t k = 0; k < row; ++k) {
      int64_t pick = static_cast<int64_t>(index[begin + k]);
      if (pick < -plan.axis_size || pick >= plan.axis_size) {
        return OutOfRange(pick, plan.axis_size);
      }
      if (pick < 0) pick += plan.axis_size;
      body(at + k * plan.strides[last] + pick * plan.axis_stride, begin + k);
    }
  }
  return absl::OkStatus();
}

template <typename Body>
absl::Status VisitIndices(const ElementPlan& plan, const Tensor& indices,
                          Body body) {
  if (indices.dtype() == tensorflow::DT_INT32) {
    return ForEachIndex<int32_t>(plan, indices, body);
  }
  if (indices.dtype() == tensorflow::DT_INT64) {
    return ForEachIndex<int64_t>(plan, indices, body);
  }
  return UnsupportedDtype("indices", indices.dtype());
}

absl::Status RequireIndexType(const tensorflow::NodeDef& node) {
  return RequireTypeAttr(node, "Tindices", OPTFARM_INDEX_TYPES);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGatherElements(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireIndexType(node));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(node, "axis", 0));
  return MakeKernel([axis](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& data = context->input(0);
    const Tensor& indices = context->input(1);
    OPTFARM_ASSIGN_OR_RETURN(const ElementPlan plan,
                             PlanElements(data.shape(), indices.shape(), axis));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(0, data.dtype(), indices.shape()));
    return VisitBySize(data.dtype(), "data", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      const T* from = data.data<T>();
      T* to = out->data<T>();
      return VisitIndices(plan, indices, [&](int64_t source, int64_t at) {
        to[at] = from[source];
      });
    });
  });
}

absl::Status Scatter(Update reduction, const ElementPlan& plan,
                     const Tensor& indices, const Tensor& updates,
                     Tensor* out) {
  const auto scatter = [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* from = updates.data<T>();
    T* to = out->data<T>();
    return VisitIndices(plan, indices, [&](int64_t target, int64_t at) {
      if constexpr (std::is_arithmetic_v<T>) {
        to[target] = Updated(reduction, to[target], from[at]);
      } else {
        to[target] = from[at];
      }
    });
  };
  if (reduction == Update::kAssign) {
    return VisitBySize(out->dtype(), "data", scatter);
  }
  return VisitNumber(out->dtype(), "data", scatter);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeScatterElements(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireIndexType(node));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(node, "axis", 0));
  OPTFARM_ASSIGN_OR_RETURN(const Update reduction, ReadReduction(node));
  if (reduction != Update::kAssign) {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  }
  return MakeKernel([axis, reduction](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& data = context->input(0);
    const Tensor& indices = context->input(1);
    const Tensor& updates = context->input(2);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(data, updates));
    OPTFARM_RETURN_IF_ERROR(RequireShape(updates, "updates", indices.shape()));
    OPTFARM_ASSIGN_OR_RETURN(const ElementPlan plan,
                             PlanElements(data.shape(), indices.shape(), axis));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out, WritableCopy(data, "data"));
    OPTFARM_RETURN_IF_ERROR(Scatter(reduction, plan, indices, updates, &out));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

// GatherNd for each example of the leading `batch_dims` dimensions by itself.
absl::Status GatherBatched(int64_t batch_dims, KernelContext* context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& params = context->input(0);
  const Tensor& indices = context->input(1);
  const int last = indices.rank() - 1;
  const int64_t depth = last < 0 ? 0 : indices.dim(last);
  if (batch_dims > last || depth > params.rank() - batch_dims ||
      !std::equal(params.shape().dims().begin(),
                  params.shape().dims().begin() + batch_dims,
                  indices.shape().dims().begin())) {
    return absl::InvalidArgumentError(
        absl::StrCat("indices of shape ", indices.shape().ToString(),
                     " do not point into shape ", params.shape().ToString(),
                     " behind ", batch_dims, " common dimensions"));
  }
  const int b = static_cast<int>(batch_dims);
  const int inner = b + static_cast<int>(depth);
  std::vector<int64_t> dims(indices.shape().dims().begin(),
                            indices.shape().dims().end() - 1);
  dims.insert(dims.end(), params.shape().dims().begin() + inner,
              params.shape().dims().end());
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, params.dtype(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> picks,
                           indices.AsInt64s());
  const int64_t run = DimProduct(params.shape(), inner, params.rank());
  const int64_t slices = DimProduct(params.shape(), b, inner);
  const int64_t vectors = DimProduct(indices.shape(), b, last);
  return VisitBySize(params.dtype(), "params", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < out->num_elements() / run; ++i) {
      int64_t slice = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t size = params.dim(b + static_cast<int>(k));
        const int64_t pick = picks[i * depth + k];
        if (pick < -size || pick >= size) return OutOfRange(pick, size);
        slice = slice * size + (pick < 0 ? pick + size : pick);
      }
      std::copy_n(params.data<T>() + (i / vectors * slices + slice) * run, run,
                  out->data<T>() + i * run);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGatherNdBatched(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireIndexType(node));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t batch_dims,
                           graph::GetIntOr(node, "batch_dims", 0));
  if (batch_dims < 0 || batch_dims > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_dims = ", batch_dims, " is not a rank"));
  }
  return MakeKernel([batch_dims](KernelContext* context) {
    return GatherBatched(batch_dims, context);
  });
}

}  // namespace

void AddElementIndexKernels(KernelCatalog* catalog) {
  catalog->Add("GatherElements", MakeGatherElements);
  catalog->Add("GatherNdBatched", MakeGatherNdBatched);
  catalog->Add("ScatterElements", MakeScatterElements);
}

}  // namespace optfarm::runtime
