#include "engine/runtime/fast/int8_weights.h"

#include <cstring>
#include <utility>

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

}  // namespace

Int8Weights::Int8Weights(Tensor packed, int64_t depth, int64_t columns)
    : packed_(std::move(packed)),
      depth_(depth),
      columns_(columns),
      padded_depth_(RoundUp(depth, kInt8Group)),
      blocks_(RoundUp(columns, kInt8Columns) / kInt8Columns) {}

absl::StatusOr<Tensor> Int8Weights::Pack(const Tensor& codes, int64_t depth,
                                         int64_t columns, bool transposed) {
  const int64_t padded_depth = RoundUp(depth, kInt8Group);
  const int64_t padded_columns = RoundUp(columns, kInt8Columns);
  const auto sum_bytes = static_cast<int64_t>(sizeof(int32_t)) * padded_columns;
  OPTFARM_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::FromDims({padded_depth * padded_columns + sum_bytes}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor packed,
                           Tensor::Zeros(tensorflow::DT_INT8, shape));
  int8_t* out = packed.data<int8_t>();
  auto* sums = reinterpret_cast<uint32_t*>(out + padded_depth * padded_columns);
  const uint8_t* in = codes.data<uint8_t>();
  const int64_t step_k = transposed ? 1 : columns;
  const int64_t step_c = transposed ? depth : 1;
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t c = 0; c < columns; ++c) {
      const int32_t code = in[k * step_k + c * step_c] - kInt8Shift;
      out[Place(padded_depth, k, c)] = static_cast<int8_t>(code);
      sums[c] += static_cast<uint32_t>(code);
    }
  }
  return packed;
}

absl::StatusOr<Tensor> Int8Weights::Unpack(const Shape& shape,
                                           bool transposed) const {
  OPTFARM_ASSIGN_OR_RETURN(Tensor codes,
                           Tensor::Allocate(tensorflow::DT_QUINT8, shape));
  uint8_t* out = codes.data<uint8_t>();
  const int8_t* in = packed_.data<int8_t>();
  for (int64_t k = 0; k < depth_; ++k) {
    for (int64_t c = 0; c < columns_; ++c) {
      out[transposed ? c * depth_ + k : k * columns_ + c] =
          static_cast<uint8_t>(in[Place(padded_depth_, k, c)] + kInt8Shift);
    }
  }
  return codes;
}

const int8_t* Int8Weights::block(int64_t number) const {
  return packed_.data<int8_t>() + number * padded_depth_ * kInt8Columns;
}

const int32_t* Int8Weights::sums() const {
  return reinterpret_cast<const int32_t*>(block(blocks_));
}

}  // namespace optfarm::runtime
