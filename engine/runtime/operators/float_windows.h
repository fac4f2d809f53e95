// Slides windows over an image with the micro-kernels of one instruction set;
// what depthwise convolution and pooling share.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_FLOAT_WINDOWS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_FLOAT_WINDOWS_H_

#include <cstdint>

#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/reference/nn/window.h"
#include "engine/runtime/ukernels/float/float_window.h"

namespace optfarm::runtime {

struct WindowSlide {
  void (*run)(const FloatWindow& window) = nullptr;
  Window window;
  int64_t batch = 0;
  int64_t channels = 0;
  const float* image = nullptr;
  // By cell and channel; nullptr for pooling.
  const float* weights = nullptr;
  // By channel; nullptr for none.
  const float* scale = nullptr;
  const float* bias = nullptr;
  Rectifier rectifier = Rectifier::kNone;
  float* out = nullptr;
  // UNITS: elements from pixel to pixel of `out`.
  int64_t out_stride = 0;
};

// Rows [begin, end) of the result, counted over batch and height, one behind
// the other from `out` on; channels of a pixel lie together.
void SlideRows(const WindowSlide& slide, int64_t begin, int64_t end,
               float* out);
// All of it. Cells outside of the image take no part.
void Slide(const WindowSlide& slide, ThreadPool* pool);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_FLOAT_WINDOWS_H_
