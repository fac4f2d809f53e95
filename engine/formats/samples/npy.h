// NumPy's .npy files, versions 1 to 3. A TensorProto with raw content carries
// the array; engine/runtime's Tensor converts from and to it.

#ifndef OPTFARM_ENGINE_FORMATS_SAMPLES_NPY_H_
#define OPTFARM_ENGINE_FORMATS_SAMPLES_NPY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace optfarm::formats {

// UNITS: bytes. The largest .npy file read unless the caller says otherwise.
inline constexpr uint64_t kMaxNpyBytes = uint64_t{4} << 30;

// Numbers, bool and complex numbers come as tensor_content, in C order and
// little endian whatever the file has; byte strings ("|S8") as string_val
// without their padding of zero bytes. `name` stands in messages.
// ERRORS: InvalidArgument for bytes that are no .npy file, a malformed header,
// fewer or more bytes than the shape asks for, or an element type without a
// tensor dtype (objects, structures, Unicode, dates). Sizes are checked before
// memory is taken.
absl::StatusOr<tensorflow::TensorProto> ParseNpy(absl::string_view bytes,
                                                 absl::string_view name);

// ERRORS: ParseNpy's and those of reading the file.
absl::StatusOr<tensorflow::TensorProto> LoadNpy(
    const std::string& path, uint64_t max_bytes = kMaxNpyBytes);

// Version 1, little endian, C order. Quantized dtypes are written as the
// integers that code them, strings as "|S<longest>".
// ERRORS: InvalidArgument for a tensor that is not well formed or a list of
// values shorter than the shape; Unimplemented for a dtype NumPy does not have
// (bfloat16, resource, variant).
absl::StatusOr<std::string> SerializeNpy(const tensorflow::TensorProto& tensor);

// Writes a file atomically. ERRORS: SerializeNpy's and the file's.
absl::Status SaveNpy(const tensorflow::TensorProto& tensor,
                     const std::string& path);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_SAMPLES_NPY_H_
