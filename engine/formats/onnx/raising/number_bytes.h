// Numbers as the bytes of a tensor's elements, and back.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_RAISING_NUMBER_BYTES_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_RAISING_NUMBER_BYTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::formats {

// One element of the type, little endian; empty for a type that is no number.
std::string NumberBytes(tensorflow::DataType type, double value);

// The same of a whole number. REQUIRES: DT_INT32 or DT_INT64.
std::string IntegerBytes(tensorflow::DataType type, int64_t value);

// The elements of a whole-number type or bool; nullopt for other types.
std::optional<std::vector<int64_t>> IntegersFromBytes(tensorflow::DataType type,
                                                      absl::string_view bytes);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_RAISING_NUMBER_BYTES_H_
