// Reading the inputs that all quantized kernels share: tensors of quantized
// values and the scalars of their ranges.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_INPUTS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_INPUTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

// The range whose min is input `min_index` and whose max is the next but
// `stride - 1` input.
// ERRORS: InvalidArgument unless both are single finite floats, min <= max.
absl::StatusOr<Range> InputRange(const KernelContext& context, int min_index,
                                 int stride = 1);

// The ranges whose mins are input `min_index` and whose maxs are the next: one,
// or one for each of `channels` channels.
// ERRORS: InvalidArgument for another number, and as InputRange.
absl::StatusOr<std::vector<Range>> InputRanges(const KernelContext& context,
                                               int min_index, int64_t channels);

// ERRORS: InvalidArgument naming the input unless it has the dtype.
absl::Status RequireInputDtype(const KernelContext& context, int index,
                               DataType dtype);

// Stores a range in outputs `first` and `first + 1`.
void SetOutputRange(KernelContext* context, int first, Range range);

// The zero point of an 8-bit input, which padding and offsets use.
// ERRORS: InvalidArgument when the range is so far from zero that the quantized
// value of zero leaves [-most, most]; sums of many products need a small one.
absl::StatusOr<int32_t> ZeroPointOf(Range range, int32_t most = 1024);

// How far the zero point may lie when `depth` products are added up: as far
// as the sums stay within 32 bits, and 1024 in any case.
int32_t MostZero(int64_t depth);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_INPUTS_H_
