// How two shapes broadcast against each other: numpy's rule. Neighbouring
// dimensions that behave alike are merged, so that most pairs become one or two
// dimensions.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_BROADCAST_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_BROADCAST_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

struct BroadcastPlan {
  Shape output;
  // The output in merged dimensions; the last one is a row.
  absl::InlinedVector<int64_t, 4> sizes;
  // Elements from one index of a merged dimension to the next; 0 where the
  // input is repeated. In the row they are 0 or 1.
  absl::InlinedVector<int64_t, 4> a_steps;
  absl::InlinedVector<int64_t, 4> b_steps;

  int64_t row() const { return sizes.back(); }
  // REQUIRES: row() > 0.
  int64_t rows() const { return output.num_elements() / row(); }
  bool a_moves() const { return a_steps.back() != 0; }
  bool b_moves() const { return b_steps.back() != 0; }

  // Calls body(a offset, b offset, out offset) for rows [begin, end).
  void ForEachRow(
      int64_t begin, int64_t end,
      absl::FunctionRef<void(int64_t, int64_t, int64_t)> body) const;

  // Calls body(a index, b index, out index) for every element of the output.
  template <typename Body>
  void ForEachElement(Body body) const {
    if (output.num_elements() == 0) return;
    ForEachRow(0, rows(), [&](int64_t in_a, int64_t in_b, int64_t at) {
      for (int64_t i = 0; i < row(); ++i) {
        body(in_a + (a_moves() ? i : 0), in_b + (b_moves() ? i : 0), at + i);
      }
    });
  }
};

// ERRORS: InvalidArgument when the shapes do not broadcast.
absl::StatusOr<BroadcastPlan> PlanBroadcast(const Shape& a, const Shape& b);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_BROADCAST_H_
