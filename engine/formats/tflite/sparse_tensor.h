// Sparse constants of TensorFlow Lite files as dense arrays.
//
// The stored elements are the leaves of a tree. Its levels are the dimensions
// in traversal order, those of the tensor first, then those of a block. A dense
// level has a child for each index; a compressed one has a segment of a list of
// indices for each node of the level above.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_SPARSE_TENSOR_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_SPARSE_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::tflite {

struct SparsityParameters;

// The bytes of all elements, zero where none is stored. UNITS: `element_bytes`
// of each element.
// REQUIRES: `shape` has no negative dimension, and the caller can have that
// many bytes.
// ERRORS: InvalidArgument for parameters that contradict the shape, each other
// or the number of stored elements.
absl::StatusOr<std::string> ExpandSparse(const SparsityParameters& sparsity,
                                         const std::vector<int64_t>& shape,
                                         int64_t element_bytes,
                                         absl::string_view stored);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_SPARSE_TENSOR_H_
