// TensorFlow Lite's interpreter does not round all halves to even
// (docs/tflite.md), and ONNX's QuantizeLinear does. What is quantized is
// therefore moved off the halves by a little, and our reader knows the move
// again, so that a model keeps its meaning in both directions:
//
//   half_up        QuantizeLinear(x + step / 16384); of a sum another of
//                  kMovesUp or none. The node's metadata say it
//   half_away      QuantizeLinear(x + sign(x + zero_point * step) * step /
//                  16384)
//   input_scale s  QuantizeLinear(x * factor + step / 1024), where factor makes
//                  step / s a multiple of 1/256

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_LITE_ROUNDING_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_LITE_ROUNDING_H_

#include <string>

#include "absl/strings/string_view.h"
#include "engine/formats/onnx/lowering.h"

namespace optfarm::formats {

// UNITS: steps. Sums of floats are not exact: what is this near to a half is
// one, as in the kernel of QuantizeLinear.
inline constexpr float kNearHalf = 1.0f / 16384;
// The moves among which raising/sum_rounding.h chooses.
inline constexpr float kMovesUp[] = {kNearHalf / 64, kNearHalf / 8,
                                     kNearHalf / 4, kNearHalf / 2, kNearHalf};
// Multiples of 1/256 that are no halves are not this near to one.
inline constexpr float kNearRatio = 1.0f / 1024;

// What values with steps of `input_scale` are multiplied by.
float RatioFactor(float input_scale, float step);

// What a node's metadata says of the interpreter's arithmetic; other runtimes
// do not look at it. With this prefix: rounding of QuantizeLinear, input_scale
// and output_scale of HardSwish, as in docs/tflite.md.
inline constexpr char kNotePrefix[] = "optfarm.";
inline constexpr char kRoundingNote[] = "optfarm.rounding";
// "" where there is none.
std::string LiteNote(const NodeLowering& n, absl::string_view key);

// A value to quantize as the file has it, and how it is rounded.
struct LiteRounded {
  Endpoint x;
  // "" for half to even.
  std::string rounding;
  // Not 0: x are multiples of it.
  float input_scale = 0;
};

// Takes such a move of the node's input `x` back; `x` itself where there is
// none.
LiteRounded TakeMoveBack(NodeLowering& n, Endpoint x, Endpoint scale,
                         Endpoint zero_point);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_LITE_ROUNDING_H_
