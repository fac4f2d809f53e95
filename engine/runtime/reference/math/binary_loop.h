// The loop over two broadcast inputs, over rows in which an input either moves
// with the output or stands still. Only a row is compiled for each function
// and element type; what is around it knows an element by its size.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BINARY_LOOP_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BINARY_LOOP_H_

#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/reference/broadcast.h"
#include "engine/runtime/reference/dtype_switch.h"

namespace optfarm::runtime {

// UNITS: elements worth handing to another thread.
inline constexpr int64_t kBinaryGrain = 32 * 1024;

// A function of two elements of one type, over a row. Inputs that do not move
// are one element.
struct BinaryRow {
  using Function = void (*)(const void* a, bool a_moves, const void* b,
                            bool b_moves, int64_t count, void* out);

  void Run(const void* a, bool a_moves, const void* b, bool b_moves,
           int64_t count, void* out) const {
    if (is_swapped) {
      function(b, b_moves, a, a_moves, count, out);
    } else {
      function(a, a_moves, b, b_moves, count, out);
    }
  }

  Function function = nullptr;
  // UNITS: bytes of an element.
  int64_t in_bytes = 0;
  int64_t out_bytes = 0;
  // The function wants the second input first.
  bool is_swapped = false;
};

// Sets `row` to what works on elements of `dtype`.
// ERRORS: Unimplemented for dtypes that the op does not take.
using BinaryRowChoice = absl::Status (*)(DataType dtype, BinaryRow* row);

template <typename Op, typename T, typename R>
void RunBinaryRow(const void* a, bool a_moves, const void* b, bool b_moves,
                  int64_t count, void* out) {
  const T* from_a = static_cast<const T*>(a);
  const T* from_b = static_cast<const T*>(b);
  R* to = static_cast<R*>(out);
  if (a_moves && b_moves) {
    for (int64_t i = 0; i < count; ++i) to[i] = Op::Of(from_a[i], from_b[i]);
  } else if (a_moves) {
    const T fixed = *from_b;
    for (int64_t i = 0; i < count; ++i) to[i] = Op::Of(from_a[i], fixed);
  } else {
    const T fixed = *from_a;
    for (int64_t i = 0; i < count; ++i) to[i] = Op::Of(fixed, from_b[i]);
  }
}

// The row of Op::Of(T, T).
template <typename Op, typename T>
BinaryRow BinaryRowOf() {
  using R = std::remove_cvref_t<decltype(Op::Of(T(), T()))>;
  return {&RunBinaryRow<Op, T, R>, sizeof(T), sizeof(R)};
}

// Choices for ops over the dtypes of dtype_switch.h's visitors.
template <typename Op>
absl::Status ChooseFloatRow(DataType dtype, BinaryRow* row) {
  return VisitFloat(dtype, "x", [&](auto tag) {
    *row = BinaryRowOf<Op, typename decltype(tag)::type>();
    return absl::OkStatus();
  });
}
template <typename Op>
absl::Status ChooseIntegerRow(DataType dtype, BinaryRow* row) {
  return VisitInteger(dtype, "x", [&](auto tag) {
    *row = BinaryRowOf<Op, typename decltype(tag)::type>();
    return absl::OkStatus();
  });
}
template <typename Op>
absl::Status ChooseNumberRow(DataType dtype, BinaryRow* row) {
  return VisitNumber(dtype, "x", [&](auto tag) {
    *row = BinaryRowOf<Op, typename decltype(tag)::type>();
    return absl::OkStatus();
  });
}
template <typename Op>
absl::Status ChooseNumberOrComplexRow(DataType dtype, BinaryRow* row) {
  return VisitNumberOrComplex(dtype, "x", [&](auto tag) {
    *row = BinaryRowOf<Op, typename decltype(tag)::type>();
    return absl::OkStatus();
  });
}

// Writes the row's function of `a` and `b` for each element of the plan's
// output. The threads of `pool` share the work.
void RunBinary(const BinaryRow& row, const Tensor& a, const Tensor& b,
               const BroadcastPlan& plan, ThreadPool* pool, Tensor* out);

// The two inputs, checked, and how they broadcast.
// ERRORS: InvalidArgument when they differ in dtype or do not broadcast.
absl::StatusOr<BroadcastPlan> PlanInputs(const KernelContext& context);

// The whole of a kernel whose output has `out_dtype`, the inputs' own where
// that is DT_INVALID.
// ERRORS: InvalidArgument when the inputs' dtypes differ or their shapes do not
// broadcast; what `choose` returns for other dtypes.
absl::Status ComputeBroadcast(KernelContext* context, BinaryRowChoice choose,
                              DataType out_dtype = tensorflow::DT_INVALID);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_BINARY_LOOP_H_
