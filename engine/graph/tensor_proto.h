// Looking at a TensorProto without making a tensor of it: is it well formed,
// and what integers does it hold. A model file may claim any shape; nothing
// here takes memory in proportion to a claim.

#ifndef OPTFARM_ENGINE_GRAPH_TENSOR_PROTO_H_
#define OPTFARM_ENGINE_GRAPH_TENSOR_PROTO_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::graph {

// Bytes of one element; 0 for types without a fixed size (string, resource,
// variant), for types packed below a byte, and for unknown ones.
int64_t ElementBytes(tensorflow::DataType dtype);

// Number of elements of a fully known shape; a scalar has one.
// ERRORS: InvalidArgument when the rank is unknown or above 254, a dimension is
// negative, or the product does not fit in 63 bits.
absl::StatusOr<int64_t> ElementCount(const tensorflow::TensorShapeProto& shape);

// Whether the tensor can be decoded: a known type, a fully known shape, and
// either tensor_content of exactly elements x element size, or a list of
// values of that type. A short list is allowed (its last value is repeated)
// as long as the whole tensor stays below kMaxRepeatedBytes.
// ERRORS: InvalidArgument.
absl::Status CheckTensorProto(const tensorflow::TensorProto& tensor);

// A tensor that repeats one value may claim far more memory than the file has
// bytes. Real models do it for zeros and ones, up to a few megabytes.
inline constexpr int64_t kMaxRepeatedBytes = int64_t{1} << 30;

// The elements of a tensor of a whole-number type or bool with at most `most`
// elements, in row-major order; nullopt for any other tensor.
std::optional<std::vector<int64_t>> ReadIntegers(
    const tensorflow::TensorProto& tensor, int64_t most);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_TENSOR_PROTO_H_
