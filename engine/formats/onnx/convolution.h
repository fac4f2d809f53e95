// Convolution of an image, for the operators that contain one.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_CONVOLUTION_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_CONVOLUTION_H_

#include "absl/status/statusor.h"
#include "engine/formats/onnx/lowering.h"

namespace optfarm::formats {

// What Conv says of image `x` (N, C, spatial...) and filter `w` (O, C / groups,
// spatial...), with the node's attributes. `bias` may be nothing.
absl::StatusOr<Endpoint> Convolve(NodeLowering& n, Endpoint x, Endpoint w,
                                  Endpoint bias);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_CONVOLUTION_H_
