// How two shapes broadcast against each other: numpy's rule. Neighbouring
// dimensions that behave alike are merged, so that most pairs become one or two
// dimensions.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_BROADCAST_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_BROADCAST_H_

#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

// How `kInputs` inputs lie under their output.
template <int kInputs>
struct BroadcastDims {
  using Offsets = std::array<int64_t, kInputs>;

  // The output in merged dimensions; the last one is a row.
  absl::InlinedVector<int64_t, 4> sizes;
  // Elements of each input from one index of a merged dimension to the next; 0
  // where it is repeated. In the row they are 0 or 1.
  absl::InlinedVector<Offsets, 4> steps;

  int64_t row() const { return sizes.back(); }
  bool moves(int input) const { return steps.back()[input] != 0; }

  // Calls body(offset in each input, out offset) for rows [begin, end).
  void ForEachRow(int64_t begin, int64_t end,
                  absl::FunctionRef<void(const Offsets&, int64_t)> body) const;
};

// REQUIRES: every input broadcasts to `output`; 2 or 3 of them.
template <int kInputs>
BroadcastDims<kInputs> MergeDims(
    const Shape& output, const std::array<const Shape*, kInputs>& inputs);

struct BroadcastPlan {
  Shape output;
  BroadcastDims<2> dims;

  int64_t row() const { return dims.row(); }
  // REQUIRES: row() > 0.
  int64_t rows() const { return output.num_elements() / row(); }
  bool a_moves() const { return dims.moves(0); }
  bool b_moves() const { return dims.moves(1); }

  // Calls body(a offset, b offset, out offset) for rows [begin, end).
  template <typename Body>
  void ForEachRow(int64_t begin, int64_t end, Body body) const {
    dims.ForEachRow(begin, end,
                    [&body](const BroadcastDims<2>::Offsets& in, int64_t out) {
                      body(in[0], in[1], out);
                    });
  }

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
