// Boxes cut out of tensors: how checkpoints store a large variable in parts.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_TENSOR_SLICE_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_TENSOR_SLICE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor_slice.pb.h"

namespace optfarm::formats {

// One extent for each axis of the whole tensor; none for a scalar.
struct TensorSlice {
  struct Extent {
    int64_t start = 0;
    int64_t length = 0;
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  std::vector<Extent> extents;

  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;

  // Sizes of the box.
  std::vector<int64_t> Shape() const;
  // UNITS: elements. REQUIRES: it lies in a tensor.
  int64_t Volume() const;
  // "0,3:1,2", as graphs write it.
  std::string ToString() const;
};

// All of a tensor.
TensorSlice WholeTensor(absl::Span<const int64_t> shape);

// ERRORS: InvalidArgument for a box that has not the tensor's rank, is empty
// where the tensor is not, or reaches beyond it.
absl::StatusOr<TensorSlice> ResolveSlice(
    const tensorflow::TensorSliceProto& slice, absl::Span<const int64_t> shape);

// Where a part of a variable belongs: "4 6 0,2:-" is rows 0 and 1 of a tensor
// [4,6]. An empty text means a whole tensor of whatever shape: nullopt.
struct ShapeAndSlice {
  std::vector<int64_t> shape;
  TensorSlice slice;
};
// ERRORS: InvalidArgument saying what is wrong.
absl::StatusOr<std::optional<ShapeAndSlice>> ParseShapeAndSlice(
    absl::string_view text);

// The key under which a table keeps a part of a tensor. REQUIRES: a slice made
// by ParseSliceKey or read from a checkpoint.
std::string EncodeSliceKey(absl::string_view name,
                           const tensorflow::TensorSliceProto& slice);
// False for bytes that are no such key.
bool ParseSliceKey(absl::string_view key, std::string* name,
                   tensorflow::TensorSliceProto* slice);

// Calls `run` for each stretch of elements that two boxes of one tensor share
// and that is contiguous in both; the numbers count from each box's begin.
using SharedRun =
    std::function<void(int64_t in_a, int64_t in_b, int64_t count)>;
// REQUIRES: both have the same rank.
void ForEachSharedRun(const TensorSlice& a, const TensorSlice& b,
                      const SharedRun& run);

// Whether two boxes of the same rank have elements in common.
bool Overlap(const TensorSlice& a, const TensorSlice& b);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_TENSOR_SLICE_H_
