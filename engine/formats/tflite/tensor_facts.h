// What a tensor of a TensorFlow Lite file says of itself: type, shape,
// quantization, and its constant data as a dense array.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_TENSOR_FACTS_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_TENSOR_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::tflite {

struct Tensor;

// real = (quantized - zero_point) * scale, for the tensor or for each index of
// `axis`.
struct Quantization {
  std::vector<float> scale;
  // As many as scales.
  std::vector<int64_t> zero_point;
  int axis = 0;

  bool is_per_channel() const { return scale.size() > 1; }
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

// Constant data. UNITS: `bytes` are elements of `type`, row by row; 4-bit
// values have a byte each.
struct Constant {
  tensorflow::DataType type = tensorflow::DT_INVALID;
  std::vector<int64_t> shape;
  std::string bytes;
};

// Checks what is in the file for a tensor: shape, and the length of `data`, its
// constant, against them. Sparsity is checked when the data are read.
// ERRORS: InvalidArgument; Unimplemented for a type that we do not know.
absl::Status CheckTensor(const Tensor& tensor, absl::string_view data);

// The type in which a graph holds the tensor: 4-bit integers as those of 8
// bits. DT_INVALID where it has none.
tensorflow::DataType TypeOf(const Tensor& tensor);
// UNITS: bits of a value: 4 for INT4, ...; 8 where the type says it.
int BitsOf(const Tensor& tensor);

// Dimensions, -1 for a free one.
std::vector<int64_t> ShapeOf(const Tensor& tensor);
// Whether the rank is known: an empty shape is often just not known.
bool HasRank(const Tensor& tensor);

// Whether the tensor holds quantized values that stand for real numbers.
bool IsQuantized(const Tensor& tensor);
// REQUIRES: IsQuantized.
// ERRORS: InvalidArgument for numbers that do not fit the tensor;
// Unimplemented for quantization in blocks.
absl::StatusOr<Quantization> QuantizationOf(const Tensor& tensor);

// The elements, sparse ones and packed ones expanded.
// ERRORS: InvalidArgument for data or sparsity that are damaged;
// ResourceExhausted when the dense array would have more than `max_bytes`.
absl::StatusOr<Constant> ReadConstant(const Tensor& tensor,
                                      absl::string_view data,
                                      int64_t max_bytes);

// The elements of a constant of integers.
std::vector<int64_t> IntegersOf(const Constant& constant);
// `constant` with dimension i being what was dimension order[i].
// REQUIRES: a permutation of its dimensions.
Constant Permuted(const Constant& constant, const std::vector<int>& order);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_TENSOR_FACTS_H_
