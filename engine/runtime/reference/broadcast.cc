#include "engine/runtime/reference/broadcast.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::runtime {

absl::StatusOr<BroadcastPlan> PlanBroadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  const auto dim_of = [rank](const Shape& shape, int axis) {
    const int own = axis - (rank - shape.rank());
    return own < 0 ? int64_t{1} : shape.dim(own);
  };
  std::vector<int64_t> dims(rank);
  for (int i = 0; i < rank; ++i) {
    const int64_t da = dim_of(a, i);
    const int64_t db = dim_of(b, i);
    if (da != db && da != 1 && db != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(),
                       " do not broadcast: ", da, " against ", db));
    }
    dims[i] = da == 1 ? db : da;
  }
  BroadcastPlan plan;
  OPTFARM_ASSIGN_OR_RETURN(plan.output, Shape::FromDims(dims));
  // From the last dimension to the first; reversed at the end.
  int64_t a_stride = 1;
  int64_t b_stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (dims[i] == 1) continue;
    const bool a_moves = dim_of(a, i) != 1;
    const bool b_moves = dim_of(b, i) != 1;
    const bool merges = !plan.sizes.empty() &&
                        (plan.a_steps.back() != 0) == a_moves &&
                        (plan.b_steps.back() != 0) == b_moves;
    if (merges) {
      plan.sizes.back() *= dims[i];
    } else {
      plan.sizes.push_back(dims[i]);
      plan.a_steps.push_back(a_moves ? a_stride : 0);
      plan.b_steps.push_back(b_moves ? b_stride : 0);
    }
    if (a_moves) a_stride *= dims[i];
    if (b_moves) b_stride *= dims[i];
  }
  if (plan.sizes.empty()) {
    plan.sizes.push_back(1);
    plan.a_steps.push_back(1);
    plan.b_steps.push_back(1);
  }
  std::reverse(plan.sizes.begin(), plan.sizes.end());
  std::reverse(plan.a_steps.begin(), plan.a_steps.end());
  std::reverse(plan.b_steps.begin(), plan.b_steps.end());
  return plan;
}

void BroadcastPlan::ForEachRow(
    int64_t begin, int64_t end,
    absl::FunctionRef<void(int64_t, int64_t, int64_t)> body) const {
  const int last = static_cast<int>(sizes.size()) - 1;
  for (int64_t r = begin; r < end; ++r) {
    int64_t rest = r;
    int64_t a = 0;
    int64_t b = 0;
    for (int i = last - 1; i >= 0; --i) {
      const int64_t index = rest % sizes[i];
      rest /= sizes[i];
      a += index * a_steps[i];
      b += index * b_steps[i];
    }
    body(a, b, r * row());
  }
}

}  // namespace optfarm::runtime
