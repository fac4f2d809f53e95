#include "engine/runtime/fast/int8_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/fast/int8_tile.h"

namespace optfarm::runtime {
namespace {

int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Where the weight of row k and column c is, in bytes.
int64_t Place(int64_t padded_depth, int64_t k, int64_t c) {
  const int64_t block = c / kInt8Columns * kInt8Columns * padded_depth;
  const int64_t group = k / kInt8Group * kInt8Columns * kInt8Group;
  return block + group + c % kInt8Columns * kInt8Group + k % kInt8Group;
}

// With the sums.
int64_t PackedBytes(int64_t depth, int64_t columns) {
  const int64_t padded_columns = RoundUp(columns, kInt8Columns);
  return padded_columns *
         (RoundUp(depth, kInt8Group) + static_cast<int64_t>(sizeof(int32_t)));
}

// Of unsigned codes the highest bit turns over: that is 128 less.
uint8_t FlipOf(DataType dtype) {
  return dtype == tensorflow::DT_QUINT8 ? kInt8Shift : 0;
}

// The row of the packed matrix for a place in the window, counted line by line.
int64_t DepthwiseRow(const Shape& filter, int64_t row) {
  const int64_t y = row / filter.dim(1), x = row % filter.dim(1);
  const int64_t groups = RoundUp(filter.dim(0), kInt8Group) / kInt8Group;
  return (x * groups + y / kInt8Group) * kInt8Group + y % kInt8Group;
}

// The same where lines are filled up.
int64_t LinedRow(const Shape& filter, int64_t row) {
  const int64_t line = filter.dim(1) * filter.dim(2);
  return row / line * RoundUp(line, kInt8Group) + row % line;
}

// The rows of `codes`, each at its place in a matrix of depth x columns whose
// other rows become zero when they are packed.
absl::StatusOr<Tensor> SpreadRows(const Tensor& codes, int64_t depth,
                                  int64_t columns,
                                  absl::FunctionRef<int64_t(int64_t)> place) {
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::FromDims({depth, columns}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor rows, Tensor::Zeros(codes.dtype(), shape));
  auto* out = static_cast<uint8_t*>(rows.raw());
  std::memset(out, FlipOf(codes.dtype()), static_cast<size_t>(depth * columns));
  const auto* in = static_cast<const uint8_t*>(codes.raw());
  for (int64_t row = 0; row < codes.num_elements() / columns; ++row) {
    std::memcpy(out + place(row) * columns, in + row * columns,
                static_cast<size_t>(columns));
  }
  return rows;
}

}  // namespace

Int8Weights::Int8Weights(PackedWeights packed, int64_t depth, int64_t columns)
    : packed_(std::move(packed)),
      depth_(depth),
      columns_(columns),
      padded_depth_(RoundUp(depth, kInt8Group)),
      blocks_(RoundUp(columns, kInt8Columns) / kInt8Columns) {}

WeightLayout Int8Weights::LayoutOf(const Tensor& codes, int64_t depth,
                                   int64_t columns, bool transposed) {
  WeightLayout layout;
  layout.name = absl::StrCat("int8 ", depth, "x", columns,
                             transposed ? " transposed" : "");
  layout.packed_bytes = PackedBytes(depth, columns);
  layout.pack = [depth, columns, transposed](const Tensor& weights,
                                             ThreadPool* pool,
                                             WeightLayout::Done) {
    return Pack(weights, depth, columns, transposed, pool);
  };
  layout.unpack = [depth, columns, transposed, dtype = codes.dtype(),
                   shape = codes.shape()](const Tensor& packed) {
    return Int8Weights(PackedWeights(packed), depth, columns)
        .Unpack(dtype, shape, transposed);
  };
  return layout;
}

WeightLayout Int8Weights::LayoutOfDepthwise(const Tensor& codes) {
  const Shape& shape = codes.shape();
  const int64_t depth = Int8DepthwiseDepth(shape), columns = shape.dim(2);
  WeightLayout layout;
  layout.name = absl::StrCat("int8 depthwise ", shape.ToString());
  layout.packed_bytes = PackedBytes(depth, columns);
  layout.pack = [shape](const Tensor& weights, ThreadPool* pool,
                        WeightLayout::Done) {
    return PackDepthwise(weights.Reshaped(shape), pool);
  };
  layout.unpack = [depth, columns, dtype = codes.dtype(),
                   shape](const Tensor& packed) {
    return Int8Weights(PackedWeights(packed), depth, columns)
        .UnpackDepthwise(dtype, shape);
  };
  return layout;
}

WeightLayout Int8Weights::LayoutOfLines(const Tensor& codes) {
  const Shape& shape = codes.shape();
  const int64_t depth = Int8LinedDepth(shape), columns = shape.dim(3);
  WeightLayout layout;
  layout.name = absl::StrCat("int8 lines ", shape.ToString());
  layout.packed_bytes = PackedBytes(depth, columns);
  layout.pack = [shape](const Tensor& weights, ThreadPool* pool,
                        WeightLayout::Done) {
    return PackLines(weights.Reshaped(shape), pool);
  };
  layout.unpack = [depth, columns, dtype = codes.dtype(),
                   shape](const Tensor& packed) {
    return Int8Weights(PackedWeights(packed), depth, columns)
        .UnpackLines(dtype, shape);
  };
  return layout;
}

absl::StatusOr<Tensor> Int8Weights::Pack(const Tensor& codes, int64_t depth,
                                         int64_t columns, bool transposed,
                                         ThreadPool* pool) {
  const int64_t padded_depth = RoundUp(depth, kInt8Group);
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::FromDims({PackedBytes(depth, columns)}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor packed,
                           Tensor::Zeros(tensorflow::DT_INT8, shape));
  int8_t* out = packed.data<int8_t>();
  const int64_t blocks = RoundUp(columns, kInt8Columns) / kInt8Columns;
  auto* sums =
      reinterpret_cast<uint32_t*>(out + padded_depth * blocks * kInt8Columns);
  const auto* in = static_cast<const uint8_t*>(codes.raw());
  const uint8_t flip = FlipOf(codes.dtype());
  const int64_t step_k = transposed ? 1 : columns;
  const int64_t step_c = transposed ? depth : 1;
  constexpr int64_t kCodesPerRange = 64 * 1024;
  pool->ParallelFor(
      blocks, 1 + kCodesPerRange / (padded_depth * kInt8Columns),
      [&](int64_t begin, int64_t end) {
        const int64_t last = std::min(end * kInt8Columns, columns);
        for (int64_t k = 0; k < depth; ++k) {
          for (int64_t c = begin * kInt8Columns; c < last; ++c) {
            const uint8_t code = in[k * step_k + c * step_c] ^ flip;
            const auto signed_code = static_cast<int8_t>(code);
            out[Place(padded_depth, k, c)] = signed_code;
            sums[c] += static_cast<uint32_t>(int32_t{signed_code});
          }
        }
      });
  return packed;
}

absl::StatusOr<Tensor> Int8Weights::Unpack(DataType dtype, const Shape& shape,
                                           bool transposed) const {
  OPTFARM_ASSIGN_OR_RETURN(Tensor codes, Tensor::Allocate(dtype, shape));
  auto* out = static_cast<uint8_t*>(codes.raw());
  const int8_t* in = block(0);
  const uint8_t flip = FlipOf(dtype);
  for (int64_t k = 0; k < depth_; ++k) {
    for (int64_t c = 0; c < columns_; ++c) {
      const auto code = static_cast<uint8_t>(in[Place(padded_depth_, k, c)]);
      out[transposed ? c * depth_ + k : k * columns_ + c] = code ^ flip;
    }
  }
  return codes;
}

absl::StatusOr<Tensor> Int8Weights::PackDepthwise(const Tensor& codes,
                                                  ThreadPool* pool) {
  const Shape& filter = codes.shape();
  OPTFARM_ASSIGN_OR_RETURN(
      const Tensor rows,
      SpreadRows(codes, Int8DepthwiseDepth(filter), filter.dim(2),
                 [&](int64_t row) { return DepthwiseRow(filter, row); }));
  return Pack(rows, rows.dim(0), rows.dim(1), false, pool);
}

absl::StatusOr<Tensor> Int8Weights::UnpackDepthwise(DataType dtype,
                                                    const Shape& shape) const {
  return UnpackRows(dtype, shape,
                    [&](int64_t row) { return DepthwiseRow(shape, row); });
}

absl::StatusOr<Tensor> Int8Weights::PackLines(const Tensor& codes,
                                              ThreadPool* pool) {
  const Shape& filter = codes.shape();
  OPTFARM_ASSIGN_OR_RETURN(
      const Tensor rows,
      SpreadRows(codes, Int8LinedDepth(filter), filter.dim(3),
                 [&](int64_t row) { return LinedRow(filter, row); }));
  return Pack(rows, rows.dim(0), rows.dim(1), false, pool);
}

absl::StatusOr<Tensor> Int8Weights::UnpackLines(DataType dtype,
                                                const Shape& shape) const {
  return UnpackRows(dtype, shape,
                    [&](int64_t row) { return LinedRow(shape, row); });
}

absl::StatusOr<Tensor> Int8Weights::UnpackRows(
    DataType dtype, const Shape& shape,
    absl::FunctionRef<int64_t(int64_t)> place) const {
  OPTFARM_ASSIGN_OR_RETURN(const Shape all,
                           Shape::FromDims({depth_, columns_}));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor rows, Unpack(dtype, all, false));
  OPTFARM_ASSIGN_OR_RETURN(Tensor codes, Tensor::Allocate(dtype, shape));
  const auto* in = static_cast<const uint8_t*>(rows.raw());
  auto* out = static_cast<uint8_t*>(codes.raw());
  for (int64_t row = 0; row < codes.num_elements() / columns_; ++row) {
    std::memcpy(out + row * columns_, in + place(row) * columns_,
                static_cast<size_t>(columns_));
  }
  return codes;
}

int64_t Int8DepthwiseDepth(const Shape& filter) {
  return RoundUp(filter.dim(0), kInt8Group) * filter.dim(1);
}

int64_t Int8LinedDepth(const Shape& filter) {
  return filter.dim(0) * RoundUp(filter.dim(1) * filter.dim(2), kInt8Group);
}

const int8_t* Int8Weights::block(int64_t number) const {
  return packed_.packed().data<int8_t>() +
         number * padded_depth_ * kInt8Columns;
}

const int32_t* Int8Weights::sums() const {
  return reinterpret_cast<const int32_t*>(block(blocks_));
}

}  // namespace optfarm::runtime
