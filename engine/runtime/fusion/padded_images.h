// Images that a convolution reads: as they are, or as a copy with their
// borders where the copy is smaller than what hangs over the borders.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_PADDED_IMAGES_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_PADDED_IMAGES_H_

#include <cstdint>
#include <optional>

#include "engine/runtime/core/scratch.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {

class PaddedImages {
 public:
  // `batch` images of window.y.in x window.x.in pixels. `by_rows`: who reads
  // them copies each row of a window that hangs over a border in x; the images
  // are copied if all such rows together have more elements than they have with
  // their borders. OWNERSHIP: the caller's; the images outlive this.
  PaddedImages(const float* images, int64_t batch, int64_t channels,
               const Window& window, bool by_rows);

  const float* data() const { return data_; }
  // Where windows stand in data(): without padding if it is a copy.
  const Window& window() const { return window_; }

 private:
  void Copy(int64_t batch, int64_t channels);

  const float* data_;
  Window window_;
  std::optional<Scratch<float>> copy_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_PADDED_IMAGES_H_
