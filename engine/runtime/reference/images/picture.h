// Pictures from files, for the decoding ops: their pixels count against the
// run's memory. Each decoder checks the picture's size before it takes any.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_PICTURE_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_PICTURE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/pictures/decoders.h"
#include "engine/runtime/core/counted_vector.h"

namespace optfarm::runtime {

struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
  // Rows from the top, without gaps; 16-bit samples in this machine's order.
  CountedVector<uint8_t> bytes;
};

// ERRORS: those of engine/pictures.
absl::StatusOr<Picture> DecodeJpeg(absl::string_view bytes,
                                   const pictures::JpegOptions& options);
absl::StatusOr<Picture> DecodePng(absl::string_view bytes,
                                  const pictures::PngOptions& options);
// ERRORS: InvalidArgument for bytes that are no whole BMP; ResourceExhausted
// for one of more than pictures::kMaxPixels.
// `channels` 0 takes what the file has; else 1, 3 or 4, which must be it.
absl::StatusOr<Picture> DecodeBmp(absl::string_view bytes, int channels);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_PICTURE_H_
