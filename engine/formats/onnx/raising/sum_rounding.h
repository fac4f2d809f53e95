// Sums of two dequantized tensors that are quantized again, as ADD of the
// TensorFlow Lite interpreter has them: whose arithmetic a runtime's comes
// nearest to, moved off the halves or not (../lite_rounding.h).

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_RAISING_SUM_ROUNDING_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_RAISING_SUM_ROUNDING_H_

#include <cstdint>

namespace optfarm::formats {

// A tensor of 8 bits: value v stands for (v - zero_point) * scale. Values and
// zero point count from 0 to 255.
struct SumTensor {
  float scale = 1;
  int32_t zero_point = 0;
};

// UNITS: steps of the result. By how much the sum is to be moved before
// QuantizeLinear, whose halves go to even, so that as few as possible of the
// 65,536 pairs of values give another result than XNNPACK's ADD (ratios of 21
// bits, halves go up). 0 where that is as good, because ONNX Runtime computes a
// sum that is not moved on integers (QLinearAdd); else one of kMovesUp.
float NearestMove(const SumTensor& a, const SumTensor& b,
                  const SumTensor& result);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_RAISING_SUM_ROUNDING_H_
