// One decoder a picture format; image.h chooses among them.

#ifndef OPTFARM_ENGINE_FORMATS_IMAGE_DECODERS_H_
#define OPTFARM_ENGINE_FORMATS_IMAGE_DECODERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/image.h"

namespace optfarm::formats {

// ERRORS: as DecodeImage.
absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes, int channels);
absl::StatusOr<Image> DecodePng(absl::string_view bytes, int channels);

absl::Status ImageTooLarge(int64_t height, int64_t width);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_IMAGE_DECODERS_H_
