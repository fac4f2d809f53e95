// IDX files, the form that MNIST and its successors come in: two zero bytes, a
// byte for the element type, one for the number of dimensions, the dimensions
// and then the elements, all big endian.

#ifndef OPTFARM_ENGINE_FORMATS_SAMPLES_IDX_H_
#define OPTFARM_ENGINE_FORMATS_SAMPLES_IDX_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace optfarm::formats {

// Whether the bytes begin as an IDX file, whole or not.
bool IsIdx(absl::string_view bytes);

// The array as tensor_content. `name` stands in messages.
// ERRORS: InvalidArgument for bytes that are no IDX file, an element type that
// is not known, or more or fewer bytes than the dimensions ask for. Sizes are
// checked before memory is taken.
absl::StatusOr<tensorflow::TensorProto> ParseIdx(absl::string_view bytes,
                                                 absl::string_view name);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_SAMPLES_IDX_H_
