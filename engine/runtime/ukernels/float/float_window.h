// Windows that slide over each channel by itself: depthwise convolution and
// pooling. One call computes pixels that stand side by side and see the same
// cells of the window; a window that hangs over the border has fewer cells.
//
// This header is included by files that are compiled for one instruction set,
// and stays free of code.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_WINDOW_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_WINDOW_H_

#include <cstdint>

#include "engine/runtime/ukernels/float/float_tile.h"

namespace optfarm::runtime {

struct FloatWindow {
  // By cell: where the first pixel's inputs stand; the next pixel's stand
  // `pixel_stride` elements further.
  const float* const* inputs = nullptr;
  // By cell, as inputs: a weight for each channel.
  const float* const* weights = nullptr;
  int64_t cells = 0;
  // Adjacent cells of one window row: within each run, inputs[c + 1] is
  // inputs[c] + pixel_stride. REQUIRES: cells is a multiple.
  int64_t run = 1;
  int64_t pixels = 0;
  int64_t pixel_stride = 0;
  int64_t channels = 0;
  // `channels` values: what sums are multiplied by before the bias is added;
  // nullptr for nothing.
  const float* scale = nullptr;
  // `channels` values; nullptr for none.
  const float* bias = nullptr;
  float* out = nullptr;
  // UNITS: elements from one pixel to the next.
  int64_t out_stride = 0;
  Rectifier rectifier = Rectifier::kNone;
};

struct FloatWindows {
  // Sum of inputs times weights, one rounding for each cell.
  void (*depthwise)(const FloatWindow& window);
  // NaN loses against everything.
  void (*max)(const FloatWindow& window);
  // The sum divided by the number of cells.
  void (*average)(const FloatWindow& window);
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_WINDOW_H_
