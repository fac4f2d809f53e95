// TensorFlow Lite's interpreter does not round all halves to even
// (docs/tflite.md), and ONNX's QuantizeLinear does. What is quantized is
// therefore moved off the halves by a little, and our reader knows the move
// again, so that a model keeps its meaning in both directions:
//
//   half_up        QuantizeLinear(x + step / 16384)
//   half_away      QuantizeLinear(x + sign(x + zero_point * step) * step /
//                  16384)
//   input_scale s  QuantizeLinear(x * factor + step / 1024), where factor makes
//                  step / s a multiple of 1/256

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_LITE_ROUNDING_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_LITE_ROUNDING_H_

#include <string>

#include "engine/formats/onnx/lowering.h"

namespace optfarm::formats {

// UNITS: steps. Sums of floats are not exact: what is this near to a half is
// one, as in the kernel of QuantizeLinear.
inline constexpr float kNearHalf = 1.0f / 16384;
// Multiples of 1/256 that are no halves are not this near to one.
inline constexpr float kNearRatio = 1.0f / 1024;

// What values with steps of `input_scale` are multiplied by.
float RatioFactor(float input_scale, float step);

// A value to quantize as the file has it, and how it is rounded.
struct LiteRounded {
  Endpoint x;
  // "" for half to even.
  std::string rounding;
  // Not 0: x are multiples of it.
  float input_scale = 0;
};

// Takes such a move back; `x` itself where there is none.
LiteRounded TakeMoveBack(NodeLowering& n, Endpoint x, Endpoint scale,
                         Endpoint zero_point);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_LITE_ROUNDING_H_
