// Pixels to files, for the encoding ops.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_PICTURE_ENCODERS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_PICTURE_ENCODERS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::runtime {

// Rows from the top, without gaps. OWNERSHIP: borrowed.
struct Pixels {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
  // 8 or 16; 16-bit samples in this machine's order.
  int bits = 8;
  const uint8_t* bytes = nullptr;
};

struct JpegEncoding {
  int quality = 95;
  bool is_progressive = false;
  bool optimizes_size = false;
  bool halves_chroma = true;
  bool density_is_per_cm = false;
  int x_density = 300;
  int y_density = 300;
  std::string xmp_metadata;
};

// REQUIRES: 1 to 4 channels.
// ERRORS: InvalidArgument for pixels that the format cannot hold.
absl::StatusOr<std::string> EncodePng(const Pixels& pixels, int compression);
// REQUIRES: 1 or 3 channels of 8 bits.
// ERRORS: as EncodePng.
absl::StatusOr<std::string> EncodeJpeg(const Pixels& pixels,
                                       const JpegEncoding& encoding);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_PICTURE_ENCODERS_H_
