// Quantized values as floats and back, for the lowerings of several families.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_QUANTIZATION_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_QUANTIZATION_H_

#include "absl/status/statusor.h"
#include "engine/formats/onnx/lowering.h"

namespace optfarm::formats {

// Scale and zero point as the graph's ops take them: a float of rank 0 or 1,
// and of the quantized type. A zero point that is left out is 0.
struct OnnxQuantization {
  Endpoint scale;
  Endpoint zero_point;
};

// Of inputs `scale` and `scale + 1`; `quantized` is the type of zero points
// that are left out.
OnnxQuantization ReadQuantization(NodeLowering& n, int scale,
                                  DataType quantized);

// The range of the values and zero, in 255 steps of uint8, found in each run.
absl::StatusOr<OnnxQuantization> DynamicRange(NodeLowering& n, Endpoint x);

// Floats from quantized values. `axis` counts for a scale for each channel.
Endpoint Dequantized(NodeLowering& n, Endpoint x, const OnnxQuantization& q,
                     int64_t axis = -1, int bits = 8);
Endpoint Quantized(NodeLowering& n, Endpoint x, const OnnxQuantization& q,
                   int64_t axis = -1, int bits = 8);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_QUANTIZATION_H_
