// Scatter and ScatterNd onto variables, in all their arithmetic.

#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/state/variable_changes.h"

namespace optfarm::runtime {
namespace {

// Updates row indices[i] of the value by row i; a scalar updates all of them.
absl::Status ScatterRows(Change change, const Tensor& indices,
                         const Tensor& updates, Tensor* value) {
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(*value, updates));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, indices.AsInt64s());
  if (value->rank() < 1) {
    return absl::InvalidArgumentError("a scalar has no rows to update");
  }
  const int64_t row = DimProduct(value->shape(), 1, value->rank());
  int64_t wanted = 0;
  if (__builtin_mul_overflow(static_cast<int64_t>(rows.size()), row, &wanted) ||
      updates.num_elements() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("updates of shape ", updates.shape().ToString(),
                     " do not fit ", rows.size(), " rows of a variable of ",
                     "shape ", value->shape().ToString()));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= value->dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "index ", rows[i], " is not in [0, ", value->dim(0), ")"));
    }
    OPTFARM_RETURN_IF_ERROR(ChangeElements(change, updates,
                                           static_cast<int64_t>(i) * row, row,
                                           rows[i] * row, value));
  }
  return absl::OkStatus();
}

// Each vector along the last axis of `indices` names a slice of the value.
absl::Status ScatterSlices(Change change, const Tensor& indices,
                           const Tensor& updates, Tensor* value) {
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(*value, updates));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> at, indices.AsInt64s());
  const int64_t depth =
      indices.rank() == 0 ? 1 : indices.dim(indices.rank() - 1);
  if (depth < 1 || depth > value->rank()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "indices of shape ", indices.shape().ToString(),
        " do not lead into a variable of shape ", value->shape().ToString()));
  }
  const int64_t slice =
      DimProduct(value->shape(), static_cast<int>(depth), value->rank());
  const int64_t count = static_cast<int64_t>(at.size()) / depth;
  int64_t wanted = 0;
  if (__builtin_mul_overflow(count, slice, &wanted) ||
      updates.num_elements() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("updates of shape ", updates.shape().ToString(),
                     " do not fit ", count, " slices of ", slice, " elements"));
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t index = at[i * depth + d];
      const int64_t size = value->dim(static_cast<int>(d));
      if (index < 0 || index >= size) {
        return absl::InvalidArgumentError(
            absl::StrCat("index ", index, " is not in [0, ", size, ")"));
      }
      offset = offset * size + index;
    }
    OPTFARM_RETURN_IF_ERROR(ChangeElements(change, updates, i * slice, slice,
                                           offset * slice, value));
  }
  return absl::OkStatus();
}

using ScatterFunction = absl::Status (*)(Change, const Tensor&, const Tensor&,
                                         Tensor*);

template <ScatterFunction kScatter, Change kChange>
absl::StatusOr<std::unique_ptr<Kernel>> MakeScatter(
    const tensorflow::NodeDef& node) {
  for (const char* attr : {"T", "dtype"}) {
    if (kChange == Change::kSet) continue;
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, attr, OPTFARM_NUMBER_TYPES));
  }
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    return ChangeReferred(context, [&](Tensor* value) {
      return kScatter(kChange, context->input(1), context->input(2), value);
    });
  });
}

}  // namespace

void AddVariableScatterKernels(KernelCatalog* catalog) {
  catalog->Add("ScatterUpdate", MakeScatter<ScatterRows, Change::kSet>,
               /*is_pure=*/false);
  catalog->Add("ScatterAdd", MakeScatter<ScatterRows, Change::kAdd>,
               /*is_pure=*/false);
  catalog->Add("ScatterSub", MakeScatter<ScatterRows, Change::kSubtract>,
               /*is_pure=*/false);
  catalog->Add("ResourceScatterUpdate", MakeScatter<ScatterRows, Change::kSet>,
               /*is_pure=*/false);
  catalog->Add("ResourceScatterAdd", MakeScatter<ScatterRows, Change::kAdd>,
               /*is_pure=*/false);
  catalog->Add("ScatterNdUpdate", MakeScatter<ScatterSlices, Change::kSet>,
               /*is_pure=*/false);
  catalog->Add("ScatterNdAdd", MakeScatter<ScatterSlices, Change::kAdd>,
               /*is_pure=*/false);
  catalog->Add("ScatterNdSub", MakeScatter<ScatterSlices, Change::kSubtract>,
               /*is_pure=*/false);
  catalog->Add("ScatterMul", MakeScatter<ScatterRows, Change::kMultiply>,
               /*is_pure=*/false);
  catalog->Add("ScatterDiv", MakeScatter<ScatterRows, Change::kDivide>,
               /*is_pure=*/false);
  catalog->Add("ScatterMin", MakeScatter<ScatterRows, Change::kMin>,
               /*is_pure=*/false);
  catalog->Add("ScatterMax", MakeScatter<ScatterRows, Change::kMax>,
               /*is_pure=*/false);
}

}  // namespace optfarm::runtime
