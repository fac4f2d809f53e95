// Ranges for 8-bit values that leave rare values out, so that the others get
// finer steps. What lies outside becomes the range's end. The formulas are
// derived in docs/quantization.md.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_CLIPPED_RANGE_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_CLIPPED_RANGE_H_

#include "engine/transforms/freezing/range_log.h"
#include "engine/transforms/quantizing/value_histogram.h"

namespace optfarm::transforms {

// All of these include zero, lie within the smallest and largest value (and
// zero), and are 0 and 0 for a histogram without values other than zero.

// The range with the least mean square error of 256 quantized values (formula
// 37).
ObservedRange LeastErrorRange(const ValueHistogram& histogram);

// The range whose 256 quantized values keep most of the distribution's
// information: the least Kullback-Leibler divergence between the values, those
// outside put on the ends, and what the quantized values tell of them (formula
// 39).
ObservedRange LeastDivergenceRange(const ValueHistogram& histogram);

// The range that leaves out `percent` of the values on each side of it, to the
// precision of a bin. REQUIRES: 0 <= percent <= 50.
ObservedRange PercentileRange(const ValueHistogram& histogram, double percent);

// The mean square error of formula 37. REQUIRES: low <= 0 <= high.
double ExpectedError(const ValueHistogram& histogram, double low, double high);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_CLIPPED_RANGE_H_
