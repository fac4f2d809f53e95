// 4-bit values in blocks along an axis, each block with a scale and a zero
// point: how DequantizeBlocks stores a tensor.
//
//   real = (value - zero_point) * scale, value and zero_point from 0 to 15
//
// Values are two to a byte in the tensor's order, the first in the lower half;
// so are zero points, in the order of the scales. Without zero points each is
// 8. This is ONNX's blocked DequantizeLinear on uint4.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_BLOCK_QUANTIZATION_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_BLOCK_QUANTIZATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// The zero point where none is given.
inline constexpr int kMiddleOfFourBits = 8;

// Value number `i`.
inline int FourBitsAt(const uint8_t* packed, int64_t i) {
  return i % 2 == 0 ? packed[i / 2] & 15 : packed[i / 2] >> 4;
}
// REQUIRES: 0 <= value < 16; the bits are 0.
inline void SetFourBits(uint8_t* packed, int64_t i, int value) {
  packed[i / 2] =
      static_cast<uint8_t>(packed[i / 2] | (i % 2 == 0 ? value : value << 4));
}
// UNITS: bytes of `count` values.
inline int64_t FourBitBytes(int64_t count) { return count / 2 + count % 2; }

// Where the blocks of a tensor are: it is outer x size x inner values, cut
// along `size`.
class BlockGrid {
 public:
  BlockGrid() = default;
  // REQUIRES: axis is within the shape, block >= 1.
  BlockGrid(const Shape& shape, int axis, int64_t block);
  // From the attributes of a DequantizeBlocks.
  // ERRORS: InvalidArgument for a missing or open shape, an axis that it does
  // not have, a block_size below 1.
  static absl::StatusOr<BlockGrid> Of(const tensorflow::NodeDef& node);

  const Shape& shape() const { return shape_; }
  int axis() const { return axis_; }
  int64_t block() const { return block_; }
  int64_t size() const { return size_; }
  // Values from one index of the axis to the next.
  int64_t inner() const { return inner_; }
  int64_t outer() const { return outer_; }
  // Along the axis; the last block may be shorter.
  int64_t blocks() const { return blocks_; }
  int64_t scale_count() const { return outer_ * blocks_ * inner_; }
  Shape ScaleShape() const;
  // The scale of index `k` of the axis. REQUIRES: 0 <= o < outer(), and so on.
  int64_t ScaleOf(int64_t o, int64_t k, int64_t i) const {
    return (o * blocks_ + k / block_) * inner_ + i;
  }
  int64_t ValueOf(int64_t o, int64_t k, int64_t i) const {
    return (o * size_ + k) * inner_ + i;
  }

  // ERRORS: InvalidArgument for tensors of other sizes or types than these
  // blocks have.
  absl::Status Check(const Tensor& x, const Tensor& scale,
                     const Tensor& zero_point) const;

 private:
  Shape shape_;
  int axis_ = 0;
  int64_t block_ = 1;
  int64_t outer_ = 1, size_ = 0, inner_ = 1, blocks_ = 0;
};

// The zero point of scale number `i`. REQUIRES: BlockGrid::Check.
inline int ZeroPointAt(const Tensor& zero_point, int64_t i) {
  return zero_point.num_elements() == 0
             ? kMiddleOfFourBits
             : FourBitsAt(zero_point.data<uint8_t>(), i);
}
// Scale number `i`, of half or float. REQUIRES: BlockGrid::Check.
float ScaleAt(const Tensor& scale, int64_t i);

// The reals of outer indices [begin, end). REQUIRES: BlockGrid::Check; room in
// `out`, which begins at the first of them.
void DequantizeOuter(const BlockGrid& grid, const Tensor& x,
                     const Tensor& scale, const Tensor& zero_point,
                     int64_t begin, int64_t end, float* out);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_BLOCK_QUANTIZATION_H_
