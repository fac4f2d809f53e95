// A constant tensor on its way from a graph into a model file: raw elements,
// their shape, and the scales of quantized ones, which follow the elements
// through every change of layout.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_CONSTANT_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_CONSTANT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::formats::tflite_raising {

struct Constant {
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  std::vector<int64_t> dims;
  // Row-major elements.
  std::string bytes;

  // real = (element - zero_point) * scale; empty for plain values, one entry
  // for all elements, or one for each channel.
  std::vector<float> scale;
  std::vector<int64_t> zero_point;
  // Of several channels: element e has channel e / channel_stride % channels.
  int64_t channel_stride = 1;

  int64_t elements() const;
  bool is_quantized() const { return !scale.empty(); }
  // The dimension of the channels; -1 where it is no single dimension, 0 for
  // one scale.
  int channel_axis() const;
  // The entry of scale and zero_point that belongs to an element.
  int64_t channel_of(int64_t element) const {
    return scale.size() < 2
               ? 0
               : element / channel_stride % static_cast<int64_t>(scale.size());
  }
};

// Decodes a numeric tensor.
// ERRORS: InvalidArgument for one that is malformed or has no plain elements.
absl::StatusOr<Constant> DecodeConstant(const tensorflow::TensorProto& tensor);

// Says that the elements have these scales along `axis` (negative: from the
// end; of no meaning for one scale).
// ERRORS: InvalidArgument when numbers or axis do not fit the shape.
absl::Status SetScales(std::vector<float> scale,
                       std::vector<int64_t> zero_point, int axis,
                       Constant* constant);

// The constant with dimension i of the result being dimension order[i].
// ERRORS: InvalidArgument for no permutation; Unimplemented where channels
// would no longer be a regular pattern.
absl::StatusOr<Constant> Transposed(const Constant& constant,
                                    absl::Span<const int64_t> order);

// The same elements under another shape.
// ERRORS: InvalidArgument for another number of elements.
absl::Status Reshape(std::vector<int64_t> dims, Constant* constant);

// uint8 quantized values as int8: elements and zero points less 128.
// REQUIRES: the dtype is uint8, is_quantized().
void ShiftToSigned(Constant* constant);

// The real values: of float, half and double tensors, and of quantized ones.
// ERRORS: Unimplemented for other types.
absl::StatusOr<std::vector<float>> RealValues(const Constant& constant);

// A float constant.
Constant FloatConstant(std::vector<int64_t> dims,
                       absl::Span<const float> values);

// Elements of any whole-number type or bool.
// ERRORS: InvalidArgument for other types.
absl::StatusOr<std::vector<int64_t>> WholeNumbers(const Constant& constant);

// IEEE half precision, rounded to nearest even; and back.
uint16_t HalfFromFloat(float value);
float FloatFromHalf(uint16_t half);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_CONSTANT_H_
