// The filter of a transposed convolution as its operator wants it.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_TRANSPOSED_FILTER_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_TRANSPOSED_FILTER_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/formats/tflite/raising/constant.h"

namespace optfarm::formats::tflite_raising {

// [height, width, outputs of a group, inputs] as [outputs, height, width,
// inputs], scales included. The operator knows neither groups nor dilations:
// weights of zero stand between an output and the inputs of other groups, and
// between the rows and columns of a dilated window.
// ERRORS: InvalidArgument for groups that do not divide the inputs;
// Unimplemented for a filter that becomes too large, or whose scales have no
// place.
absl::StatusOr<Constant> TransposedFilter(const Constant& filter,
                                          int64_t groups,
                                          std::array<int64_t, 2> dilation);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_TRANSPOSED_FILTER_H_
