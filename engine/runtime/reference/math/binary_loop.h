// The loop over two broadcast inputs: one for each function and element type,
// over rows in which an input either moves with the output or stands still.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BINARY_LOOP_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BINARY_LOOP_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/broadcast.h"

namespace optfarm::runtime {

// UNITS: elements worth handing to another thread.
inline constexpr int64_t kBinaryGrain = 32 * 1024;

template <typename Op, typename T, typename R>
void RunRow(const T* a, bool a_moves, const T* b, bool b_moves, int64_t count,
            R* out) {
  if (a_moves && b_moves) {
    for (int64_t i = 0; i < count; ++i) out[i] = Op::Of(a[i], b[i]);
  } else if (a_moves) {
    const T fixed = *b;
    for (int64_t i = 0; i < count; ++i) out[i] = Op::Of(a[i], fixed);
  } else {
    const T fixed = *a;
    for (int64_t i = 0; i < count; ++i) out[i] = Op::Of(fixed, b[i]);
  }
}

// Writes Op::Of(a, b) for each element of the plan's output.
template <typename Op, typename T, typename R>
void RunAll(const T* a, const T* b, const BroadcastPlan& plan, ThreadPool* pool,
            R* out) {
  if (plan.output.num_elements() == 0) return;
  if (plan.rows() == 1) {
    // One long row is cut into pieces.
    pool->ParallelFor(
        plan.row(), kBinaryGrain, [&](int64_t begin, int64_t end) {
          RunRow<Op>(plan.a_moves() ? a + begin : a, plan.a_moves(),
                     plan.b_moves() ? b + begin : b, plan.b_moves(),
                     end - begin, out + begin);
        });
    return;
  }
  pool->ParallelFor(plan.rows(), 1 + kBinaryGrain / plan.row(),
                    [&](int64_t begin, int64_t end) {
                      plan.ForEachRow(
                          begin, end,
                          [&](int64_t in_a, int64_t in_b, int64_t at) {
                            RunRow<Op>(a + in_a, plan.a_moves(), b + in_b,
                                       plan.b_moves(), plan.row(), out + at);
                          });
                    });
}

// The two inputs, checked, and how they broadcast.
// ERRORS: InvalidArgument when they differ in dtype or do not broadcast.
inline absl::StatusOr<BroadcastPlan> PlanInputs(const KernelContext& context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, 2));
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(context.input(0), context.input(1)));
  return PlanBroadcast(context.input(0).shape(), context.input(1).shape());
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BINARY_LOOP_H_
