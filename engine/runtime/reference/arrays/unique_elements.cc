// UniqueElements: the different elements of a tensor, or the different slices
// along an axis, with where they first stand, which each one is, and how often
// each comes.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/counted_vector.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// `count` slices of outer * inner elements each.
struct Slices {
  int64_t count = 0;
  int64_t outer = 1;
  int64_t inner = 1;

  // The position of the slice's element.
  int64_t At(int64_t slice, int64_t element) const {
    return (element / inner * count + slice) * inner + element % inner;
  }
};

// NaNs equal each other and follow all numbers, so that sorting ends.
template <typename T>
int Compare(const T& a, const T& b) {
  if (a < b) return -1;
  if (b < a) return 1;
  if (a == b) return 0;
  return static_cast<int>(a != a) - static_cast<int>(b != b);
}

template <typename T>
int CompareSlices(const T* x, const Slices& slices, int64_t a, int64_t b) {
  for (int64_t k = 0; k < slices.outer * slices.inner; ++k) {
    const int order = Compare(x[slices.At(a, k)], x[slices.At(b, k)]);
    if (order != 0) return order;
  }
  return 0;
}

// How two slices compare, whatever their type: sorting is written once.
using SliceOrder = absl::FunctionRef<int(int64_t, int64_t)>;

struct Groups {
  // The first slice of each group, the group of each slice, sizes.
  CountedVector<int64_t> first;
  CountedVector<int64_t> group;
  CountedVector<int64_t> counts;
};

Groups GroupSlices(int64_t count, bool sorted, SliceOrder compare) {
  CountedVector<int64_t> order(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  Groups groups;
  groups.group.resize(count);
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      groups.first.push_back(order[i]);
      groups.counts.push_back(0);
    }
    groups.group[order[i]] = static_cast<int64_t>(groups.first.size()) - 1;
    ++groups.counts.back();
  }
  if (sorted) return groups;
  // In the order in which they first come.
  CountedVector<int64_t> rank(groups.first.size());
  std::iota(rank.begin(), rank.end(), int64_t{0});
  std::sort(rank.begin(), rank.end(), [&](int64_t a, int64_t b) {
    return groups.first[a] < groups.first[b];
  });
  Groups moved;
  CountedVector<int64_t> place(rank.size());
  for (size_t i = 0; i < rank.size(); ++i) {
    moved.first.push_back(groups.first[rank[i]]);
    moved.counts.push_back(groups.counts[rank[i]]);
    place[rank[i]] = static_cast<int64_t>(i);
  }
  for (int64_t g : groups.group) moved.group.push_back(place[g]);
  return moved;
}

absl::Status EmitVector(const CountedVector<int64_t>& values, int output,
                        KernelContext* context) {
  if (output >= context->num_outputs()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out,
      context->AllocateOutput(output, tensorflow::DT_INT64,
                              {static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), out->data<int64_t>());
  return absl::OkStatus();
}

template <typename T>
absl::Status ComputeTyped(const Tensor& x, const Slices& slices, int axis,
                          bool sorted, KernelContext* context) {
  const T* from = x.data<T>();
  const Groups groups = GroupSlices(
      slices.count, sorted,
      [&](int64_t a, int64_t b) { return CompareSlices(from, slices, a, b); });
  Slices kept = slices;
  kept.count = static_cast<int64_t>(groups.first.size());
  Shape shape({kept.count});
  if (axis >= 0) {
    OPTFARM_ASSIGN_OR_RETURN(shape, WithDim(x.shape(), axis, kept.count));
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor * y,
                           context->AllocateOutput(0, x.dtype(), shape));
  for (int64_t g = 0; g < kept.count; ++g) {
    for (int64_t k = 0; k < slices.outer * slices.inner; ++k) {
      y->data<T>()[kept.At(g, k)] = from[slices.At(groups.first[g], k)];
    }
  }
  OPTFARM_RETURN_IF_ERROR(EmitVector(groups.first, 1, context));
  OPTFARM_RETURN_IF_ERROR(EmitVector(groups.group, 2, context));
  return EmitVector(groups.counts, 3, context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeUniqueElements(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(const bool sorted,
                           graph::GetBoolOr(node, "sorted", true));
  OPTFARM_ASSIGN_OR_RETURN(const bool flattens,
                           graph::GetBoolOr(node, "flattens", true));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t named_axis,
                           graph::GetIntOr(node, "axis", 0));
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    Slices slices{x.num_elements(), 1, 1};
    int axis = -1;
    if (!flattens) {
      OPTFARM_ASSIGN_OR_RETURN(axis, NormalizeAxis(named_axis, x.rank()));
      slices = {x.dim(axis), DimProduct(x.shape(), 0, axis),
                DimProduct(x.shape(), axis + 1, x.rank())};
    }
    return VisitNumber(x.dtype(), "x", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      return ComputeTyped<T>(x, slices, axis, sorted, context);
    });
  });
}

}  // namespace

void AddUniqueElementKernels(KernelCatalog* catalog) {
  catalog->Add("UniqueElements", MakeUniqueElements);
}

}  // namespace optfarm::runtime
