// Where elements stand among others: NthElement, InTopK, SearchSorted
// (LowerBound, UpperBound).

#include "engine/runtime/reference/arrays/ranks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> MakeNthElement(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_reverse,
                           graph::GetBoolOr(node, "reverse", false));
  return MakeKernel([is_reverse](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(const int64_t n,
                             ReadInteger(context->input(1), "n"));
    const int last = input.rank() - 1;
    if (last < 0 || n < 0 || n >= input.dim(last)) {
      return absl::InvalidArgumentError(
          absl::StrCat("rows of shape ", input.shape().ToString(),
                       " have no element number ", n));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        const Shape shape,
        Shape::FromDims(input.shape().dims().subspan(0, last)));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, input.dtype(), shape));
    const int64_t size = input.dim(last);
    const int64_t at = is_reverse ? size - 1 - n : n;
    return VisitNumber(input.dtype(), "input", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      // NaN has no place in the order: it goes last.
      const auto is_less = [](T a, T b) {
        if constexpr (std::is_floating_point_v<T>) {
          if (std::isnan(a) || std::isnan(b)) {
            return !std::isnan(a) && std::isnan(b);
          }
        }
        return a < b;
      };
      for (int64_t r = 0; r < shape.num_elements(); ++r) {
        std::vector<T> row(input.data<T>() + r * size,
                           input.data<T>() + (r + 1) * size);
        std::nth_element(row.begin(), row.begin() + at, row.end(), is_less);
        out->data<T>()[r] = row[at];
      }
      return absl::OkStatus();
    });
  });
}

// Whether fewer than k predictions are above the target's.
absl::Status ComputeInTopK(int64_t k, KernelContext* context) {
  const Tensor& predictions = context->input(0);
  const Tensor& targets = context->input(1);
  OPTFARM_RETURN_IF_ERROR(
      RequireDtype(predictions, "predictions", tensorflow::DT_FLOAT));
  OPTFARM_RETURN_IF_ERROR(RequireRank(predictions, "predictions", 2));
  OPTFARM_RETURN_IF_ERROR(
      RequireShape(targets, "targets", Shape{predictions.dim(0)}));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> classes,
                           targets.AsInt64s());
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out,
      context->AllocateOutput(0, tensorflow::DT_BOOL, targets.shape()));
  const int64_t size = predictions.dim(1);
  for (size_t r = 0; r < classes.size(); ++r) {
    const float* row = predictions.data<float>() + r * size;
    const int64_t target = classes[r];
    bool is_in = target >= 0 && target < size && std::isfinite(row[target]);
    int64_t above = 0;
    for (int64_t c = 0; is_in && c < size; ++c) {
      if (!std::isfinite(row[c])) is_in = false;
      above += row[c] > row[target] ? 1 : 0;
    }
    out->data<bool>()[r] = is_in && above < k;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeInTopK(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t k, graph::GetInt(node, "k"));
  return MakeKernel([k](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    return ComputeInTopK(k, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeInTopKV2(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_INDEX_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t k,
                             ReadInteger(context->input(2), "k"));
    return ComputeInTopK(k, context);
  });
}

// Where each value would be put into its sorted row, before or behind equals.
template <bool kBehindEquals>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBound(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "out_type", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, "out_type", tensorflow::DT_INT32));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& sorted = context->input(0);
    const Tensor& values = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(sorted, values));
    OPTFARM_RETURN_IF_ERROR(RequireRank(sorted, "sorted_inputs", 2));
    OPTFARM_RETURN_IF_ERROR(RequireRank(values, "values", 2));
    OPTFARM_RETURN_IF_ERROR(
        RequireShape(values, "values", Shape{sorted.dim(0), values.dim(1)}));
    std::vector<int64_t> places;
    OPTFARM_RETURN_IF_ERROR(
        VisitNumber(values.dtype(), "values", [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          const int64_t size = sorted.dim(1);
          for (int64_t i = 0; i < values.num_elements(); ++i) {
            const T* row = sorted.data<T>() + i / values.dim(1) * size;
            const T value = values.data<T>()[i];
            const T* at = kBehindEquals
                              ? std::upper_bound(row, row + size, value)
                              : std::lower_bound(row, row + size, value);
            places.push_back(at - row);
          }
          return absl::OkStatus();
        }));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, dtype, values.shape()));
    return VisitInteger(dtype, "out_type", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::copy(places.begin(), places.end(), out->data<T>());
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddRankKernels(KernelCatalog* catalog) {
  catalog->Add("NthElement", MakeNthElement);
  catalog->Add("InTopK", MakeInTopK);
  catalog->Add("InTopKV2", MakeInTopKV2);
  catalog->Add("LowerBound", MakeBound<false>);
  catalog->Add("UpperBound", MakeBound<true>);
}

}  // namespace optfarm::runtime
