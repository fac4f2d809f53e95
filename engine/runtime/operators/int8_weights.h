// int8 weights packed by the layout of the micro-kernel that reads them
// (PanelLayout), and behind the panels the sum of each column, which corrects
// for the zero point of the activations.
//
// Signed weights stay as they are. Unsigned ones are packed less their zero
// point, so that no sums of activations are needed to correct for it. What then
// does not fit in eight bits (with a zero point of 131, the values 0 to 2) is
// the panel's outlier residual: groups behind its others, each with the number
// of the group whose activations it is multiplied by. Where a panel has no room
// for all of its residual, all weights are packed less 128 instead, and a zero
// point remains.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_WEIGHTS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_WEIGHTS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/core/packed_weights.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {

// What makes unsigned weights signed.
inline constexpr int32_t kInt8Shift = 128;

// What is packed: a matrix of depth x columns.
struct Int8Matrix {
  int64_t depth = 0;
  int64_t columns = 0;
  // Of unsigned weights; kInt8Shift for signed ones.
  int32_t zero_point = kInt8Shift;
  PanelLayout panel;
  // Groups of residual that a panel has room for.
  int64_t residual_room = 0;

  // UNITS: groups of kr rows.
  int64_t groups() const;
  int64_t panels() const;
  // UNITS: bytes.
  int64_t group_bytes() const { return int64_t{panel.nr} * panel.kr; }
  // With room for the residual, filled up to the panel's multiple.
  int64_t panel_bytes() const;
  // With the sums and the residual's groups.
  int64_t bytes() const;
};
// Room for a few outliers.
Int8Matrix MakeInt8Matrix(int64_t depth, int64_t columns, int32_t zero_point,
                          const PanelLayout& panel);
// Of a filter [height, width, channels, 1] of a depthwise convolution as
// int8_depthwise.h wants it: column by column of the window, kr rows a group.
// There is room for the residual of all: once or twice as many groups, in the
// same order. REQUIRES: 0 <= zero_point <= 255.
Int8Matrix MakeInt8DepthwiseMatrix(const Shape& filter, int32_t zero_point,
                                   const PanelLayout& panel);
// Of a convolution's filter [height, width, channels, columns] with each row of
// the window filled up to whole groups, so that a row can be read where it lies
// in the input.
Int8Matrix MakeInt8RowMatrix(const Shape& filter, int32_t zero_point,
                             const PanelLayout& panel);

// OWNERSHIP: of the packed form, shared.
class Int8Weights {
 public:
  Int8Weights() = default;
  // REQUIRES: `packed` is of LayoutOf or its kin for this matrix.
  Int8Weights(PackedWeights packed, const Int8Matrix& matrix);

  // Pack, Unpack and their kin as a layout.
  static WeightLayout LayoutOf(const Tensor& values, const Int8Matrix& matrix,
                               bool transposed);
  static WeightLayout LayoutOfDepthwise(const Tensor& values,
                                        const Int8Matrix& matrix);
  static WeightLayout LayoutOfRows(const Tensor& values,
                                   const Int8Matrix& matrix);
  // Packs if nobody did before; false when there is no memory for it.
  bool Prepare(ThreadPool* pool) const { return packed_.Get(pool) != nullptr; }
  // The values as they came. ERRORS: PackedWeights::Value's.
  absl::StatusOr<Tensor> Value() const { return packed_.Value(); }

  // `values` is quint8 or qint8; row by row (or, `transposed`, column by
  // column). ERRORS: ResourceExhausted when there is no memory.
  static absl::StatusOr<Tensor> Pack(const Tensor& values,
                                     const Int8Matrix& matrix, bool transposed,
                                     ThreadPool* pool);
  // The values again, of a tensor of this dtype and shape.
  absl::StatusOr<Tensor> Unpack(DataType dtype, const Shape& shape,
                                bool transposed) const;

  // The same for filters: MakeInt8DepthwiseMatrix, MakeInt8RowMatrix.
  static absl::StatusOr<Tensor> PackDepthwise(const Tensor& values,
                                              const Int8Matrix& matrix,
                                              ThreadPool* pool);
  absl::StatusOr<Tensor> UnpackDepthwise(DataType dtype,
                                         const Shape& shape) const;
  static absl::StatusOr<Tensor> PackRows(const Tensor& values,
                                         const Int8Matrix& matrix,
                                         ThreadPool* pool);
  absl::StatusOr<Tensor> UnpackRows(DataType dtype, const Shape& shape) const;

  const PackedWeights& packed() const { return packed_; }
  int64_t depth() const { return matrix_.depth; }
  int64_t columns() const { return matrix_.columns; }
  const PanelLayout& layout() const { return matrix_.panel; }
  // Depth with the rows that fill up the last groups.
  int64_t padded_depth() const { return padded_depth_; }
  // Columns with those that fill up the last panel.
  int64_t padded_columns() const { return panels_ * matrix_.panel.nr; }
  int64_t panels() const { return panels_; }
  // UNITS: bytes from panel to panel.
  int64_t panel_bytes() const { return panel_bytes_; }
  int64_t residual_room() const { return matrix_.residual_room; }
  // REQUIRES of all: Prepare was true.
  const int8_t* panel(int64_t number) const;
  // The groups of activations that the groups behind the panel's others are
  // for.
  absl::Span<const int32_t> residual(int64_t panel) const;
  // Of a depthwise convolution: as many, and one, in whole sets.
  int sets(int64_t panel) const {
    return matrix_.residual_room == 0
               ? 1
               : 1 + static_cast<int>(residual(panel).size()) /
                         static_cast<int>(matrix_.groups());
  }
  // The zero point of the packed weights: 0 but where the residual has no room.
  int32_t zero_point() const;
  // Whether one of the packed weights is -128.
  bool has_least_weight() const;
  // padded_columns() sums, wrapping, the residual's included.
  const int32_t* column_sums() const;

 private:
  // The rows of a tensor of this shape, each from its place.
  absl::StatusOr<Tensor> UnpackFrom(
      DataType dtype, const Shape& shape,
      absl::FunctionRef<int64_t(int64_t)> place) const;

  PackedWeights packed_;
  Int8Matrix matrix_;
  int64_t padded_depth_ = 0;
  int64_t panels_ = 0;
  int64_t panel_bytes_ = 0;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_WEIGHTS_H_
