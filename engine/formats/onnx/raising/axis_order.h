// How the axes of a tensor in the written file are ordered, compared with the
// tensor of the graph that it holds. Convolutions of a graph work on NHWC,
// those of ONNX on NCHW; a tensor between two of them stays in the file's order
// and only its description changes.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_RAISING_AXIS_ORDER_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_RAISING_AXIS_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optfarm::formats {

// Axis i of the file's tensor is axis order[i] of the graph's. Empty: the same
// axes in the same order, for any rank.
using AxisOrder = std::vector<int>;

// Channels move from the last axis to the second: NHWC is written as NCHW.
// Empty below rank 3.
AxisOrder ChannelsSecond(int rank);

// The same order, empty when it changes nothing.
AxisOrder Simplified(AxisOrder order);

// What undoes it. REQUIRES: a permutation.
AxisOrder Inverted(const AxisOrder& order);

// Where the graph's axis stands in the file. REQUIRES: 0 <= axis.
int AxisInFile(const AxisOrder& order, int axis);

// The permutation of ONNX's Transpose from a tensor in order `from` to one in
// order `to`. REQUIRES: both are of `rank` or empty.
std::vector<int64_t> TransposeBetween(const AxisOrder& from,
                                      const AxisOrder& to, int rank);

// One value for each axis, in the file's order. REQUIRES: order is empty or as
// long as `values`.
std::vector<int64_t> Permuted(absl::Span<const int64_t> values,
                              const AxisOrder& order);

// The elements of a tensor of shape `dims` in the file's order.
// REQUIRES: bytes.size() is the product of `dims` times element_bytes.
std::string PermutedBytes(absl::string_view bytes,
                          absl::Span<const int64_t> dims,
                          const AxisOrder& order, size_t element_bytes);

// The order of what is left when axes of the graph's tensor go.
AxisOrder OrderWithout(const AxisOrder& order, absl::Span<const int> gone);

// The order when the graph's tensor gets an axis of size 1 at `axis` and the
// file's gets it at the same place.
AxisOrder OrderWith(const AxisOrder& order, int axis);

// Whether a tensor in order `from` has the same bytes as in order `to`, because
// only axes of one element move. `dims` are the graph's, -1 where not known.
bool HaveSameBytes(absl::Span<const int64_t> dims, const AxisOrder& from,
                   const AxisOrder& to);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_RAISING_AXIS_ORDER_H_
