// What a convolution by Winograd's filtering is computed of.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_WINOGRAD_IMAGES_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_WINOGRAD_IMAGES_H_

#include <cstdint>

#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {

// Images of [batch, window.y.in, window.x.in, channels].
struct WinogradImages {
  const float* data = nullptr;
  int64_t batch = 0;
  int64_t channels = 0;
  Window window;
  // `channels` zeros: what lies outside.
  const float* zeros = nullptr;
};

// Tiles of two by two pixels, counted over batch, height and width.
struct WinogradTiling {
  explicit WinogradTiling(const WinogradImages& images)
      : rows((images.window.y.out + 1) / 2),
        columns((images.window.x.out + 1) / 2),
        count(images.batch * rows * columns) {}

  int64_t rows;
  int64_t columns;
  int64_t count;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_WINOGRAD_IMAGES_H_
