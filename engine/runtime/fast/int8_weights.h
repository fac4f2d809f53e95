// Weights of an 8-bit product as the tiles read them (int8_tile.h): codes less
// 128, blocks of 32 columns one behind the other, in each block groups of four
// rows; rows and columns that fill up the last group and block are zero. Behind
// them the sum of each column, which corrects for the activations' zero code.

#ifndef OPTFARM_ENGINE_RUNTIME_FAST_INT8_WEIGHTS_H_
#define OPTFARM_ENGINE_RUNTIME_FAST_INT8_WEIGHTS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/runtime/packed_weights.h"
#include "engine/runtime/tensor.h"
#include "engine/runtime/thread_pool.h"

namespace optfarm::runtime {

// What is taken off unsigned codes.
inline constexpr int32_t kInt8Shift = 128;

// A matrix of depth x columns. OWNERSHIP: of the packed form, shared.
class Int8Weights {
 public:
  Int8Weights() = default;
  // REQUIRES: `packed` is of LayoutOf or LayoutOfDepthwise for this size.
  Int8Weights(PackedWeights packed, int64_t depth, int64_t columns);

  // Pack, Unpack and their kin as a layout.
  static WeightLayout LayoutOf(const Tensor& codes, int64_t depth,
                               int64_t columns, bool transposed);
  static WeightLayout LayoutOfDepthwise(const Tensor& codes);
  static WeightLayout LayoutOfLines(const Tensor& codes);
  // Packs if nobody did before; false when there is no memory for it.
  bool Prepare(ThreadPool* pool) const { return packed_.Get(pool) != nullptr; }
  // The codes as they came. ERRORS: PackedWeights::Value's.
  absl::StatusOr<Tensor> Value() const { return packed_.Value(); }

  // `codes` is quint8, or qint8, whose codes stay as they are; row by row (or,
  // `transposed`, column by column).
  // ERRORS: ResourceExhausted when there is no memory.
  static absl::StatusOr<Tensor> Pack(const Tensor& codes, int64_t depth,
                                     int64_t columns, bool transposed,
                                     ThreadPool* pool);
  // The codes again, of a tensor of this dtype and shape.
  absl::StatusOr<Tensor> Unpack(DataType dtype, const Shape& shape,
                                bool transposed) const;

  // The filter [height, width, channels, 1] of a depthwise convolution as
  // int8_depthwise.h wants it: a matrix of Int8DepthwiseDepth(shape) x
  // channels, column by column of the window, four rows a group.
  static absl::StatusOr<Tensor> PackDepthwise(const Tensor& codes,
                                              ThreadPool* pool);
  absl::StatusOr<Tensor> UnpackDepthwise(DataType dtype,
                                         const Shape& shape) const;

  // A convolution's filter [height, width, channels, columns] with each line of
  // the window filled up to whole groups, so that a line can be read where it
  // lies in the image: a matrix of Int8LinedDepth(shape) x columns.
  static absl::StatusOr<Tensor> PackLines(const Tensor& codes,
                                          ThreadPool* pool);
  absl::StatusOr<Tensor> UnpackLines(DataType dtype, const Shape& shape) const;

  int64_t depth() const { return depth_; }
  int64_t columns() const { return columns_; }
  // Depth with the rows that fill up the last group.
  int64_t padded_depth() const { return padded_depth_; }
  int64_t blocks() const { return blocks_; }
  // REQUIRES of both: Prepare was true.
  const int8_t* block(int64_t number) const;
  // blocks() * kInt8Columns sums, wrapping.
  const int32_t* sums() const;

 private:
  // The rows of a tensor of this shape, each from its place.
  absl::StatusOr<Tensor> UnpackRows(
      DataType dtype, const Shape& shape,
      absl::FunctionRef<int64_t(int64_t)> place) const;

  PackedWeights packed_;
  int64_t depth_ = 0;
  int64_t columns_ = 0;
  int64_t padded_depth_ = 0;
  int64_t blocks_ = 0;
};

// REQUIRES: `filter` has four dimensions.
int64_t Int8DepthwiseDepth(const Shape& filter);
int64_t Int8LinedDepth(const Shape& filter);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FAST_INT8_WEIGHTS_H_
