#include "engine/runtime/reference/broadcast.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::runtime {
namespace {

// Of dimension `axis` of `rank`, of which a shape has the last ones.
int64_t DimOf(const Shape& shape, int axis, int rank) {
  const int own = axis - (rank - shape.rank());
  return own < 0 ? 1 : shape.dim(own);
}

}  // namespace

absl::StatusOr<BroadcastPlan> PlanBroadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(rank);
  for (int i = 0; i < rank; ++i) {
    const int64_t da = DimOf(a, i, rank);
    const int64_t db = DimOf(b, i, rank);
    if (da != db && da != 1 && db != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(),
                       " do not broadcast: ", da, " against ", db));
    }
    dims[i] = da == 1 ? db : da;
  }
  BroadcastPlan plan;
  OPTFARM_ASSIGN_OR_RETURN(plan.output, Shape::FromDims(dims));
  plan.dims = MergeDims<2>(plan.output, {&a, &b});
  return plan;
}

template <int kInputs>
BroadcastDims<kInputs> MergeDims(
    const Shape& output, const std::array<const Shape*, kInputs>& inputs) {
  BroadcastDims<kInputs> dims;
  typename BroadcastDims<kInputs>::Offsets strides;
  strides.fill(1);
  // From the last dimension to the first; reversed at the end.
  for (int axis = output.rank() - 1; axis >= 0; --axis) {
    const int64_t size = output.dim(axis);
    if (size == 1) continue;
    typename BroadcastDims<kInputs>::Offsets step = {};
    bool merges = !dims.sizes.empty();
    for (int i = 0; i < kInputs; ++i) {
      const bool moves = DimOf(*inputs[i], axis, output.rank()) != 1;
      if (moves) {
        step[i] = strides[i];
        strides[i] *= size;
      }
      merges = merges && moves == (dims.steps.back()[i] != 0);
    }
    if (merges) {
      dims.sizes.back() *= size;
    } else {
      dims.sizes.push_back(size);
      dims.steps.push_back(step);
    }
  }
  if (dims.sizes.empty()) {
    dims.sizes.push_back(1);
    dims.steps.emplace_back().fill(1);
  }
  std::reverse(dims.sizes.begin(), dims.sizes.end());
  std::reverse(dims.steps.begin(), dims.steps.end());
  return dims;
}

template <int kInputs>
void BroadcastDims<kInputs>::ForEachRow(
    int64_t begin, int64_t end,
    absl::FunctionRef<void(const Offsets&, int64_t)> body) const {
  const int last = static_cast<int>(sizes.size()) - 1;
  for (int64_t r = begin; r < end; ++r) {
    int64_t rest = r;
    Offsets offsets = {};
    for (int i = last - 1; i >= 0; --i) {
      const int64_t index = rest % sizes[i];
      rest /= sizes[i];
      for (int k = 0; k < kInputs; ++k) offsets[k] += index * steps[i][k];
    }
    body(offsets, r * row());
  }
}

template struct BroadcastDims<2>;
template struct BroadcastDims<3>;
template BroadcastDims<2> MergeDims<2>(const Shape&,
                                       const std::array<const Shape*, 2>&);
template BroadcastDims<3> MergeDims<3>(const Shape&,
                                       const std::array<const Shape*, 3>&);

}  // namespace optfarm::runtime
