// Transpose, and the permutation behind it: dimensions that stay neighbours
// are merged first, so that most transposes become two or three dimensions.

#include "engine/runtime/reference/arrays/transpose.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// The output walked in its order: sizes, and the input's step per dimension.
struct Walk {
  absl::InlinedVector<int64_t, 6> sizes;
  absl::InlinedVector<int64_t, 6> steps;
};

Walk PlanWalk(const Shape& input, absl::Span<const int> permutation) {
  std::vector<int64_t> strides(input.rank(), 1);
  for (int i = input.rank() - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * input.dim(i + 1);
  }
  Walk walk;
  for (int axis : permutation) {
    const int64_t size = input.dim(axis);
    if (size == 1) continue;
    if (!walk.sizes.empty() && walk.steps.back() == strides[axis] * size) {
      walk.sizes.back() *= size;
      walk.steps.back() = strides[axis];
    } else {
      walk.sizes.push_back(size);
      walk.steps.push_back(strides[axis]);
    }
  }
  if (walk.sizes.empty()) {
    walk.sizes.push_back(1);
    walk.steps.push_back(1);
  }
  return walk;
}

template <typename T>
void Permute(const T* in, const Walk& walk, ThreadPool* pool, T* out) {
  const int last = static_cast<int>(walk.sizes.size()) - 1;
  const int64_t row = walk.sizes[last];
  const int64_t step = walk.steps[last];
  int64_t rows = 1;
  for (int i = 0; i < last; ++i) rows *= walk.sizes[i];
  const int64_t grain = std::max<int64_t>(1, 16384 / row);
  pool->ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t rest = r;
      int64_t offset = 0;
      for (int i = last - 1; i >= 0; --i) {
        offset += rest % walk.sizes[i] * walk.steps[i];
        rest /= walk.sizes[i];
      }
      const T* from = in + offset;
      T* to = out + r * row;
      if (step == 1) {
        std::copy(from, from + row, to);
      } else {
        for (int64_t k = 0; k < row; ++k) to[k] = from[k * step];
      }
    }
  });
}

absl::StatusOr<std::vector<int>> ReadPermutation(const Tensor& perm, int rank) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                           ReadIntegers(perm, "perm"));
  std::vector<int> permutation;
  std::vector<bool> seen(rank, false);
  for (int64_t value : values) {
    if (value < 0) value += rank;
    if (value < 0 || value >= rank || seen[value]) break;
    seen[value] = true;
    permutation.push_back(static_cast<int>(value));
  }
  if (static_cast<int>(values.size()) != rank ||
      static_cast<int>(permutation.size()) != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("perm [", absl::StrJoin(values, ","),
                     "] is no permutation of the ", rank, " dimensions of x"));
  }
  return permutation;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTranspose(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int> permutation,
                             ReadPermutation(context->input(1), x.rank()));
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             Transposed(x, permutation, context->pool()));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeInvertPermutation(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireDtype(x, "x", tensorflow::DT_INT32));
    OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 1));
    const int64_t count = x.num_elements();
    OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                             Tensor::Allocate(x.dtype(), x.shape()));
    std::fill_n(out.data<int32_t>(), count, -1);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t to = x.data<int32_t>()[i];
      if (to < 0 || to >= count || out.data<int32_t>()[to] >= 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("x is no permutation: ", to, " at index ", i));
      }
      out.data<int32_t>()[to] = static_cast<int32_t>(i);
    }
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Tensor> Transposed(const Tensor& input,
                                  absl::Span<const int> permutation,
                                  ThreadPool* pool) {
  std::vector<int64_t> dims;
  for (int axis : permutation) dims.push_back(input.dim(axis));
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  const Walk walk = PlanWalk(input.shape(), permutation);
  if (walk.sizes.size() == 1 && walk.steps[0] == 1) {
    return input.Reshaped(shape);
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(input.dtype(), shape));
  if (out.num_elements() == 0) return out;
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(input.dtype(), "x", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        Permute(input.data<T>(), walk, pool, out.data<T>());
        return absl::OkStatus();
      }));
  return out;
}

absl::StatusOr<Tensor> NchwToNhwc(const Tensor& input, ThreadPool* pool) {
  return Transposed(input, {0, 2, 3, 1}, pool);
}

absl::StatusOr<Tensor> NhwcToNchw(const Tensor& input, ThreadPool* pool) {
  return Transposed(input, {0, 3, 1, 2}, pool);
}

void AddTransposeKernels(KernelCatalog* catalog) {
  catalog->Add("Transpose", MakeTranspose);
  catalog->Add("InvertPermutation", MakeInvertPermutation);
}

}  // namespace optfarm::runtime
