// The arithmetic of StridedSlice: which elements of each axis x[a:b:c, ...]
// takes and what shape the result has, for inputs whose shape may be only
// partly known.

#ifndef OPTFARM_ENGINE_GRAPH_STRIDED_SLICE_H_
#define OPTFARM_ENGINE_GRAPH_STRIDED_SLICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::graph {

// A StridedSlice's operands: one entry per written index. Bit i of a mask is
// about entry i.
struct StridedSliceSpec {
  // nullopt when not known.
  std::optional<std::vector<int64_t>> begin;
  std::optional<std::vector<int64_t>> end;
  std::vector<int64_t> strides;
  int64_t begin_mask = 0;        // Entry i has no begin: from the edge.
  int64_t end_mask = 0;          // Entry i has no end: to the edge.
  int64_t ellipsis_mask = 0;     // Entry i stands for all axes left over.
  int64_t new_axis_mask = 0;     // Entry i is a new axis of size 1.
  int64_t shrink_axis_mask = 0;  // Entry i is one index; its axis goes.
};

// What to do with one axis of the input.
struct StridedSliceAxis {
  // First element taken; nullopt when it depends on what is not known.
  std::optional<int64_t> begin;
  int64_t stride = 1;
  // Number of elements taken, or kUnknownDim.
  int64_t size = kUnknownDim;
};

struct StridedSlicePlan {
  // One per axis of the input.
  std::vector<StridedSliceAxis> axes;
  // Shape of the result: taken axes without those that shrink, with new ones.
  PartialShape output;
};

// REQUIRES: input.has_rank().
// ERRORS: InvalidArgument for a zero stride, more indices than axes, two
// ellipses, operands of different lengths, or a single index out of range.
absl::StatusOr<StridedSlicePlan> PlanStridedSlice(const PartialShape& input,
                                                  const StridedSliceSpec& spec);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_STRIDED_SLICE_H_
