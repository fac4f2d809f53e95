// Permuting the dimensions of a tensor; also how kernels that compute in NHWC
// serve NCHW.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_ARRAYS_TRANSPOSE_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_ARRAYS_TRANSPOSE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"

namespace optfarm::runtime {

// Dimension i of the result is dimension permutation[i] of `input`.
// REQUIRES: `permutation` has each of 0..rank-1 once.
absl::StatusOr<Tensor> Transposed(const Tensor& input,
                                  absl::Span<const int> permutation,
                                  ThreadPool* pool);

// REQUIRES: input.rank() == 4.
absl::StatusOr<Tensor> NchwToNhwc(const Tensor& input, ThreadPool* pool);
absl::StatusOr<Tensor> NhwcToNchw(const Tensor& input, ThreadPool* pool);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_ARRAYS_TRANSPOSE_H_
