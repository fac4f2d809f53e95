// Reductions over groups of slices: SegmentSum and its kin (ids ascend),
// UnsortedSegmentSum and its kin, SparseSegmentSum and its kin (slices are
// picked by index first).

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

enum class Join { kSum, kMean, kSqrtN, kProduct, kMin, kMax };

// Integers wrap around.
template <typename T>
T JoinTwo(Join join, T a, T b) {
  switch (join) {
    case Join::kProduct:
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
      }
      return a * b;
    case Join::kMin:
      return b < a ? b : a;
    case Join::kMax:
      return a < b ? b : a;
    default:
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
      }
      return a + b;
  }
}

template <typename T>
T StartOf(Join join) {
  switch (join) {
    case Join::kProduct:
      return T(1);
    case Join::kMin:
      return std::numeric_limits<T>::max();
    case Join::kMax:
      return std::numeric_limits<T>::lowest();
    default:
      return T(0);
  }
}

// Which slice of the data goes into which group. Ids below 0 are left out.
struct Groups {
  std::vector<int64_t> ids;
  std::vector<int64_t> slices;
  int64_t count = 0;
};

template <typename T>
void JoinGroups(Join join, const Tensor& data, const Groups& groups,
                int64_t slice, T empty, Tensor* out) {
  T* to = out->data<T>();
  std::fill_n(to, groups.count * slice, StartOf<T>(join));
  std::vector<int64_t> members(groups.count, 0);
  for (size_t i = 0; i < groups.ids.size(); ++i) {
    const int64_t id = groups.ids[i];
    if (id < 0) continue;
    ++members[id];
    const T* from = data.data<T>() + groups.slices[i] * slice;
    for (int64_t k = 0; k < slice; ++k) {
      to[id * slice + k] = JoinTwo(join, to[id * slice + k], from[k]);
    }
  }
  for (int64_t g = 0; g < groups.count; ++g) {
    T* group = to + g * slice;
    if (members[g] == 0) {
      std::fill_n(group, slice, empty);
    } else if (join == Join::kMean) {
      for (int64_t k = 0; k < slice; ++k) {
        group[k] = static_cast<T>(group[k] / static_cast<T>(members[g]));
      }
    } else if (join == Join::kSqrtN) {
      const double root = std::sqrt(static_cast<double>(members[g]));
      for (int64_t k = 0; k < slice; ++k) {
        group[k] = static_cast<T>(static_cast<double>(group[k]) / root);
      }
    }
  }
}

// The output: one slice of `data` behind its first `leading` dimensions for
// each group.
absl::StatusOr<Shape> GroupedShape(const Tensor& data, int leading,
                                   int64_t groups) {
  std::vector<int64_t> dims{groups};
  for (int i = leading; i < data.rank(); ++i) dims.push_back(data.dim(i));
  return Shape::FromDims(dims);
}

// Ids that ascend from 0 or more; the last one says how many groups there are.
absl::StatusOr<int64_t> CheckAscending(const std::vector<int64_t>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t before = i == 0 ? 0 : ids[i - 1];
    if (ids[i] < before) {
      return absl::InvalidArgumentError(absl::StrCat(
          "segment_ids[", i, "] = ", ids[i],
          " is below the one before it, or below 0: ids must ascend"));
    }
  }
  if (ids.empty()) return 0;
  if (ids.back() == std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError("a segment id is too large");
  }
  return ids.back() + 1;
}

// `zero_is_empty`: a group without members is 0 rather than the start value.
absl::Status ComputeGroups(Join join, const Tensor& data, int leading,
                           const Groups& groups, bool zero_is_empty,
                           KernelContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           GroupedShape(data, leading, groups.count));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, data.dtype(), shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t slice = DimProduct(data.shape(), leading, data.rank());
  return VisitNumber(data.dtype(), "data", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    JoinGroups<T>(join, data, groups, slice,
                  zero_is_empty ? T(0) : StartOf<T>(join), out);
    return absl::OkStatus();
  });
}

template <Join kJoin>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSegment(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& data = context->input(0);
    const Tensor& ids = context->input(1);
    OPTFARM_RETURN_IF_ERROR(RequireRank(ids, "segment_ids", 1));
    if (data.rank() < 1 || data.dim(0) != ids.dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(ids.dim(0), " segment_ids do not fit data of shape ",
                       data.shape().ToString()));
    }
    Groups groups;
    OPTFARM_ASSIGN_OR_RETURN(groups.ids, ids.AsInt64s());
    OPTFARM_ASSIGN_OR_RETURN(groups.count, CheckAscending(groups.ids));
    for (size_t i = 0; i < groups.ids.size(); ++i) {
      groups.slices.push_back(static_cast<int64_t>(i));
    }
    const bool is_product = kJoin == Join::kProduct;
    return ComputeGroups(kJoin, data, 1, groups, !is_product, context);
  });
}

template <Join kJoin>
absl::StatusOr<std::unique_ptr<Kernel>> MakeUnsortedSegment(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& data = context->input(0);
    const Tensor& ids = context->input(1);
    Groups groups;
    OPTFARM_ASSIGN_OR_RETURN(groups.count,
                             ReadInteger(context->input(2), "num_segments"));
    bool fits = ids.rank() <= data.rank() && groups.count >= 0;
    for (int i = 0; fits && i < ids.rank(); ++i) {
      fits = ids.dim(i) == data.dim(i);
    }
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(
          "segment_ids of shape ", ids.shape().ToString(), " and num_segments ",
          groups.count, " do not fit data of shape ", data.shape().ToString()));
    }
    OPTFARM_ASSIGN_OR_RETURN(groups.ids, ids.AsInt64s());
    for (size_t i = 0; i < groups.ids.size(); ++i) {
      if (groups.ids[i] >= groups.count) {
        return absl::InvalidArgumentError(
            absl::StrCat("segment id ", groups.ids[i], " is not below ",
                         groups.count, ", the number of segments"));
      }
      groups.slices.push_back(static_cast<int64_t>(i));
    }
    return ComputeGroups(kJoin, data, ids.rank(), groups, false, context);
  });
}

// Slices of `data` picked by `indices`, in ascending groups.
template <Join kJoin>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSparseSegment(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_NUMBER_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    const Tensor& data = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(context->input(1), "indices", 1));
    OPTFARM_RETURN_IF_ERROR(RequireShape(context->input(2), "segment_ids",
                                         context->input(1).shape()));
    if (data.rank() < 1) {
      return absl::InvalidArgumentError("'data' must not be a scalar");
    }
    Groups groups;
    OPTFARM_ASSIGN_OR_RETURN(groups.slices, context->input(1).AsInt64s());
    OPTFARM_ASSIGN_OR_RETURN(groups.ids, context->input(2).AsInt64s());
    OPTFARM_ASSIGN_OR_RETURN(groups.count, CheckAscending(groups.ids));
    for (int64_t index : groups.slices) {
      if (index < 0 || index >= data.dim(0)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "index ", index, " is not within [0, ", data.dim(0), ")"));
      }
    }
    return ComputeGroups(kJoin, data, 1, groups, true, context);
  });
}

}  // namespace

void AddSegmentKernels(KernelCatalog* catalog) {
  catalog->Add("SegmentSum", MakeSegment<Join::kSum>);
  catalog->Add("SegmentMean", MakeSegment<Join::kMean>);
  catalog->Add("SegmentProd", MakeSegment<Join::kProduct>);
  catalog->Add("SegmentMin", MakeSegment<Join::kMin>);
  catalog->Add("SegmentMax", MakeSegment<Join::kMax>);
  catalog->Add("UnsortedSegmentSum", MakeUnsortedSegment<Join::kSum>);
  catalog->Add("UnsortedSegmentProd", MakeUnsortedSegment<Join::kProduct>);
  catalog->Add("UnsortedSegmentMin", MakeUnsortedSegment<Join::kMin>);
  catalog->Add("UnsortedSegmentMax", MakeUnsortedSegment<Join::kMax>);
  catalog->Add("SparseSegmentSum", MakeSparseSegment<Join::kSum>);
  catalog->Add("SparseSegmentMean", MakeSparseSegment<Join::kMean>);
  catalog->Add("SparseSegmentSqrtN", MakeSparseSegment<Join::kSqrtN>);
}

}  // namespace optfarm::runtime
