// Pictures from JPEG and PNG files, as the models see them: 8-bit, interleaved
// rows, one (grey) or three (RGB) channels.

#ifndef OPTFARM_ENGINE_FORMATS_SAMPLES_IMAGE_H_
#define OPTFARM_ENGINE_FORMATS_SAMPLES_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::formats {

struct Image {
  int height = 0;
  int width = 0;
  // 1 or 3.
  int channels = 0;
  // height x width x channels, row by row.
  std::vector<uint8_t> pixels;
};

// The same with real numbers, on the same 0..255 scale.
struct FloatImage {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::vector<float> pixels;
};

// Decodes a JPEG or PNG, found by content. A picture of another kind is
// converted: grey is repeated, colour becomes luma, 16 bits become 8, alpha is
// dropped.
// REQUIRES: channels is 1 or 3.
// ERRORS: InvalidArgument saying why for anything that does not decode as a
// whole (another format, cut off, corrupt); ResourceExhausted for more than
// pictures::kMaxPixels.
absl::StatusOr<Image> DecodeImage(absl::string_view bytes, int channels);

// ERRORS: DecodeImage's and the file's, naming the file.
absl::StatusOr<Image> LoadImage(const std::string& path, int channels);

// The middle of the picture: `fraction` of its height and width, rounded to
// whole pixels, at least one. REQUIRES: 0 < fraction <= 1.
Image CropCentre(const Image& image, double fraction);
// The middle height x width pixels. REQUIRES: they are in the picture.
FloatImage CropCentre(const FloatImage& image, int height, int width);

// TensorFlow's ResizeBilinear with align_corners=false: output pixel i reads
// input position i * in / out between its two neighbours.
// REQUIRES: height, width >= 1; image not empty.
FloatImage ResizeBilinear(const Image& image, int height, int width);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_SAMPLES_IMAGE_H_
