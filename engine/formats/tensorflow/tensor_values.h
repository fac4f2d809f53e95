// The elements of a TensorProto as raw bytes, whichever of its fields has them.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_TENSOR_VALUES_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_TENSOR_VALUES_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::formats {

// The typed list that belongs to `dtype`, little endian, as long as it is;
// nullopt for a type without elements of a fixed size.
std::optional<std::string> ListedBytes(tensorflow::DataType dtype,
                                       const tensorflow::TensorProto& tensor);

// All elements: the tensor's content, or its list whose last value repeats.
// ERRORS: those of graph::CheckTensorProto; InvalidArgument for a type without
// elements of a fixed size.
absl::StatusOr<std::string> RawBytes(const tensorflow::TensorProto& tensor);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_TENSOR_VALUES_H_
