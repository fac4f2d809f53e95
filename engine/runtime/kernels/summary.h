// A tensor's first elements as text, in the form that TensorFlow's Print and
// Assert write and that freeze_requantization_ranges reads back.

#ifndef OPTFARM_ENGINE_RUNTIME_KERNELS_SUMMARY_H_
#define OPTFARM_ENGINE_RUNTIME_KERNELS_SUMMARY_H_

#include <cstdint>
#include <string>

#include "engine/runtime/tensor.h"

namespace optfarm::runtime {

// Up to `limit` elements (all of them when negative), separated by spaces; the
// innermost dimensions of a tensor of rank 2 or more in brackets; "..." at the
// end when some were left out.
std::string Summarize(const Tensor& tensor, int64_t limit);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_KERNELS_SUMMARY_H_
