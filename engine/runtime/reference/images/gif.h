// Animated pictures from files.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_GIF_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_GIF_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/reference/images/picture.h"

namespace optfarm::runtime {

struct Animation {
  int64_t frames = 0;
  // The size of one frame; the bytes of all, one after the other.
  Picture picture;
};

// Red, green and blue of every frame.
// ERRORS: InvalidArgument for bytes that are no whole GIF; ResourceExhausted
// when its frames have more than pictures::kMaxPixels pixels.
absl::StatusOr<Animation> DecodeGif(absl::string_view bytes);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_GIF_H_
