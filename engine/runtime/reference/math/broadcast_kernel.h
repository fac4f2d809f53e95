// Kernels that compute each element of two broadcast inputs by itself.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BROADCAST_KERNEL_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BROADCAST_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/broadcast.h"

namespace optfarm::runtime {

// Writes op(x, y), of the inputs' dtype, for every element. `visit` is one of
// dtype_switch.h's and names the dtypes that the kernel takes.
// ERRORS: InvalidArgument when the inputs' dtypes differ or their shapes do not
// broadcast; what `visit` returns for other dtypes.
template <typename Visit, typename Op>
absl::Status ComputeBroadcast(KernelContext* context, Visit visit, Op op) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
  const Tensor& x = context->input(0);
  const Tensor& y = context->input(1);
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(x, y));
  OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                           PlanBroadcast(x.shape(), y.shape()));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, x.dtype(), plan.output));
  return visit(x.dtype(), "x", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    plan.ForEachElement([&](int64_t in_x, int64_t in_y, int64_t at) {
      out->data<T>()[at] = op(x.data<T>()[in_x], y.data<T>()[in_y]);
    });
    return absl::OkStatus();
  });
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BROADCAST_KERNEL_H_
