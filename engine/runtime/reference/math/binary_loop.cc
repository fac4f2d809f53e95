#include "engine/runtime/reference/math/binary_loop.h"

#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"

namespace optfarm::runtime {

void RunBinary(const BinaryRow& row, const Tensor& a, const Tensor& b,
               const BroadcastPlan& plan, ThreadPool* pool, Tensor* out) {
  if (plan.output.num_elements() == 0) return;
  const char* const from_a = static_cast<const char*>(a.raw());
  const char* const from_b = static_cast<const char*>(b.raw());
  char* const to = static_cast<char*>(out->raw());
  const bool a_moves = plan.a_moves(), b_moves = plan.b_moves();
  if (plan.rows() == 1) {
    // One long row is cut into pieces.
    const int64_t a_step = a_moves ? row.in_bytes : 0;
    const int64_t b_step = b_moves ? row.in_bytes : 0;
    pool->ParallelFor(
        plan.row(), kBinaryGrain, [&](int64_t begin, int64_t end) {
          row.Run(from_a + begin * a_step, a_moves, from_b + begin * b_step,
                  b_moves, end - begin, to + begin * row.out_bytes);
        });
    return;
  }
  pool->ParallelFor(plan.rows(), 1 + kBinaryGrain / plan.row(),
                    [&](int64_t begin, int64_t end) {
                      plan.ForEachRow(
                          begin, end,
                          [&](int64_t in_a, int64_t in_b, int64_t at) {
                            row.Run(from_a + in_a * row.in_bytes, a_moves,
                                    from_b + in_b * row.in_bytes, b_moves,
                                    plan.row(), to + at * row.out_bytes);
                          });
                    });
}

absl::StatusOr<BroadcastPlan> PlanInputs(const KernelContext& context) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, 2));
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(context.input(0), context.input(1)));
  return PlanBroadcast(context.input(0).shape(), context.input(1).shape());
}

absl::Status ComputeBroadcast(KernelContext* context, BinaryRowChoice choose,
                              DataType out_dtype) {
  OPTFARM_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanInputs(*context));
  const Tensor& x = context->input(0);
  BinaryRow row;
  OPTFARM_RETURN_IF_ERROR(choose(x.dtype(), &row));
  if (out_dtype == tensorflow::DT_INVALID) out_dtype = x.dtype();
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, out_dtype, plan.output));
  RunBinary(row, x, context->input(1), plan, context->pool(), out);
  return absl::OkStatus();
}

}  // namespace optfarm::runtime
