// A tensor's first elements as text, in the form that TensorFlow's Print and
// Assert write and that freeze_requantization_ranges reads back.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_TEXT_SUMMARY_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_TEXT_SUMMARY_H_

#include <cstdint>
#include <string>

#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

// Up to `limit` elements (all of them when negative), separated by spaces; the
// innermost dimensions of a tensor of rank 2 or more in brackets; "..." at the
// end when some were left out.
std::string Summarize(const Tensor& tensor, int64_t limit);

// As TensorFlow's StringFormat writes a tensor: every dimension in brackets,
// lines and indents between rows, text in quotes; of each dimension the first
// and the last `at_ends` (all when negative) with "..." between.
std::string SummarizeNested(const Tensor& tensor, int64_t at_ends);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_TEXT_SUMMARY_H_
