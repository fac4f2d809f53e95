// Weights of an 8-bit product as the tiles read them (int8_tile.h): blocks of
// 32 columns one behind the other, in each block groups of four rows; rows and
// columns that fill up the last group and block are zero. Behind them the sum
// of each column, which corrects for the activations' zero code.
//
// Signed codes stay as they are. From unsigned ones the code that stands for
// zero is taken off, so that products need no sums of activations to correct
// them by. What then does not fit in eight bits (with zero at 131, codes 0 to
// 2) is the block's rest: groups behind its others, each with the number of the
// group whose activations it is for. Where there is no room for all of the
// rest, 128 is taken off instead, and zero stays a code.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_WEIGHTS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_WEIGHTS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/core/packed_weights.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"

namespace optfarm::runtime {

// What unsigned codes need not have more taken off than to be signed.
inline constexpr int32_t kInt8Shift = 128;

// What is packed: a matrix of depth x columns.
struct Int8Matrix {
  int64_t depth = 0;
  int64_t columns = 0;
  // The unsigned code of zero; kInt8Shift for signed codes.
  int32_t zero = kInt8Shift;
  // Groups of the rest that a block has room for.
  int64_t rest_room = 0;

  // UNITS: groups of four rows, the last one filled up.
  int64_t groups() const;
  int64_t blocks() const;
  // UNITS: bytes.
  int64_t block_bytes() const;
  // With the sums and what tells of the rest.
  int64_t bytes() const;
};
// Room for a few codes that do not fit.
Int8Matrix MakeInt8Matrix(int64_t depth, int64_t columns, int32_t zero);
// Of a filter [height, width, channels, 1] of a depthwise convolution as
// int8_depthwise.h wants it: column by column of the window, four rows a group.
// There is room for the rest of all: once or twice as many groups, in the same
// order. REQUIRES: 0 <= zero <= 255.
Int8Matrix MakeInt8DepthwiseMatrix(const Shape& filter, int32_t zero);
// Of a convolution's filter [height, width, channels, columns] with each line
// of the window filled up to whole groups, so that a line can be read where it
// lies in the image.
Int8Matrix MakeInt8LinedMatrix(const Shape& filter, int32_t zero);

// OWNERSHIP: of the packed form, shared.
class Int8Weights {
 public:
  Int8Weights() = default;
  // REQUIRES: `packed` is of LayoutOf or its kin for this matrix.
  Int8Weights(PackedWeights packed, const Int8Matrix& matrix);

  // Pack, Unpack and their kin as a layout.
  static WeightLayout LayoutOf(const Tensor& codes, const Int8Matrix& matrix,
                               bool transposed);
  static WeightLayout LayoutOfDepthwise(const Tensor& codes, int32_t zero);
  static WeightLayout LayoutOfLines(const Tensor& codes, int32_t zero);
  // Packs if nobody did before; false when there is no memory for it.
  bool Prepare(ThreadPool* pool) const { return packed_.Get(pool) != nullptr; }
  // The codes as they came. ERRORS: PackedWeights::Value's.
  absl::StatusOr<Tensor> Value() const { return packed_.Value(); }

  // `codes` is quint8, or qint8, whose codes stay as they are; row by row (or,
  // `transposed`, column by column).
  // ERRORS: ResourceExhausted when there is no memory.
  static absl::StatusOr<Tensor> Pack(const Tensor& codes,
                                     const Int8Matrix& matrix, bool transposed,
                                     ThreadPool* pool);
  // The codes again, of a tensor of this dtype and shape.
  absl::StatusOr<Tensor> Unpack(DataType dtype, const Shape& shape,
                                bool transposed) const;

  // The same for filters: MakeInt8DepthwiseMatrix, MakeInt8LinedMatrix.
  static absl::StatusOr<Tensor> PackDepthwise(const Tensor& codes, int32_t zero,
                                              ThreadPool* pool);
  absl::StatusOr<Tensor> UnpackDepthwise(DataType dtype,
                                         const Shape& shape) const;
  static absl::StatusOr<Tensor> PackLines(const Tensor& codes, int32_t zero,
                                          ThreadPool* pool);
  absl::StatusOr<Tensor> UnpackLines(DataType dtype, const Shape& shape) const;

  const PackedWeights& packed() const { return packed_; }
  int64_t depth() const { return matrix_.depth; }
  int64_t columns() const { return matrix_.columns; }
  // Depth with the rows that fill up the last group.
  int64_t padded_depth() const { return padded_depth_; }
  int64_t blocks() const { return blocks_; }
  // UNITS: bytes from block to block.
  int64_t block_bytes() const { return block_bytes_; }
  int64_t rest_room() const { return matrix_.rest_room; }
  // REQUIRES of all: Prepare was true.
  const int8_t* block(int64_t number) const;
  // The groups of activations that the groups behind the block's others are
  // for.
  absl::Span<const int32_t> rest(int64_t block) const;
  // Of a depthwise convolution: as many, and one, in whole sets.
  int sets(int64_t block) const {
    return matrix_.rest_room == 0 ? 1
                                  : 1 + static_cast<int>(rest(block).size()) /
                                            static_cast<int>(matrix_.groups());
  }
  // What stands for zero, of the packed codes: 0 but where the rest has no
  // room.
  int32_t zero() const;
  // blocks() * kInt8Columns sums, wrapping, the rest's included.
  const int32_t* sums() const;

 private:
  // The rows of a tensor of this shape, each from its place.
  absl::StatusOr<Tensor> UnpackRows(
      DataType dtype, const Shape& shape,
      absl::FunctionRef<int64_t(int64_t)> place) const;

  PackedWeights packed_;
  Int8Matrix matrix_;
  int64_t padded_depth_ = 0;
  int64_t blocks_ = 0;
  int64_t block_bytes_ = 0;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_WEIGHTS_H_
