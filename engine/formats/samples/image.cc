#include "engine/formats/samples/image.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "engine/pictures/decoders.h"

namespace optfarm::formats {
namespace {

// UNITS: bytes. No picture that is read needs a larger file.
constexpr uint64_t kMaxImageFileBytes = uint64_t{512} << 20;

// One output position between two input positions.
struct Blend {
  int lower = 0;
  int upper = 0;
  float fraction = 0;
};

std::vector<Blend> Blends(int in, int out) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  std::vector<Blend> blends(out);
  for (int i = 0; i < out; ++i) {
    const float position = static_cast<float>(i) * scale;
    const int lower = std::min(static_cast<int>(position), in - 1);
    blends[i] = {lower, std::min(lower + 1, in - 1),
                 position - static_cast<float>(lower)};
  }
  return blends;
}

}  // namespace

absl::StatusOr<Image> DecodeImage(absl::string_view bytes, int channels) {
  OPTFARM_CHECK(channels == 1 || channels == 3);
  Image image;
  const auto take = [&image](const pictures::Layout& layout) {
    image.height = static_cast<int>(layout.height);
    image.width = static_cast<int>(layout.width);
    image.channels = layout.channels;
    image.pixels.resize(layout.size());
    return image.pixels.data();
  };
  switch (IdentifyBytes(bytes)) {
    case FileKind::kJpeg: {
      pictures::JpegOptions options;
      options.channels = channels;
      OPTFARM_RETURN_IF_ERROR(pictures::DecodeJpeg(bytes, options, take));
      return image;
    }
    case FileKind::kPng:
      OPTFARM_RETURN_IF_ERROR(pictures::DecodePng(bytes, {channels, 8}, take));
      return image;
    case FileKind::kEmpty:
      return absl::InvalidArgumentError("the file is empty");
    default:
      return absl::InvalidArgumentError("it is neither a JPEG nor a PNG");
  }
}

absl::StatusOr<Image> LoadImage(const std::string& path, int channels) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           ReadFile(path, kMaxImageFileBytes));
  absl::StatusOr<Image> image = DecodeImage(bytes, channels);
  if (!image.ok()) {
    return Annotate(image.status(),
                    absl::StrCat("While decoding '", path, "'"));
  }
  return image;
}

Image CropCentre(const Image& image, double fraction) {
  OPTFARM_CHECK(fraction > 0 && fraction <= 1);
  Image out;
  out.channels = image.channels;
  out.height =
      std::max(1, static_cast<int>(std::lround(image.height * fraction)));
  out.width =
      std::max(1, static_cast<int>(std::lround(image.width * fraction)));
  const int top = (image.height - out.height) / 2;
  const int left = (image.width - out.width) / 2;
  const size_t row = static_cast<size_t>(out.width) * out.channels;
  out.pixels.reserve(row * out.height);
  for (int y = 0; y < out.height; ++y) {
    const auto begin =
        image.pixels.begin() +
        (static_cast<int64_t>(top + y) * image.width + left) * image.channels;
    out.pixels.insert(out.pixels.end(), begin, begin + row);
  }
  return out;
}

FloatImage CropCentre(const FloatImage& image, int height, int width) {
  OPTFARM_CHECK(height <= image.height && width <= image.width);
  FloatImage out{height, width, image.channels, {}};
  const int top = (image.height - height) / 2;
  const int left = (image.width - width) / 2;
  const size_t row = static_cast<size_t>(width) * image.channels;
  out.pixels.reserve(row * height);
  for (int y = 0; y < height; ++y) {
    const auto begin =
        image.pixels.begin() +
        (static_cast<int64_t>(top + y) * image.width + left) * image.channels;
    out.pixels.insert(out.pixels.end(), begin, begin + row);
  }
  return out;
}

FloatImage ResizeBilinear(const Image& image, int height, int width) {
  OPTFARM_CHECK(height >= 1 && width >= 1 && !image.pixels.empty());
  FloatImage out{height, width, image.channels, {}};
  out.pixels.resize(static_cast<size_t>(height) * width * image.channels);
  const std::vector<Blend> ys = Blends(image.height, height);
  const std::vector<Blend> xs = Blends(image.width, width);
  const int c = image.channels;
  const auto row = [&image, c](int y) {
    return image.pixels.data() + static_cast<size_t>(y) * image.width * c;
  };
  float* to = out.pixels.data();
  for (const Blend& y : ys) {
    const uint8_t* top = row(y.lower);
    const uint8_t* bottom = row(y.upper);
    for (const Blend& x : xs) {
      for (int k = 0; k < c; ++k) {
        const float top_left = top[x.lower * c + k];
        const float top_right = top[x.upper * c + k];
        const float bottom_left = bottom[x.lower * c + k];
        const float bottom_right = bottom[x.upper * c + k];
        const float above = top_left + (top_right - top_left) * x.fraction;
        const float below =
            bottom_left + (bottom_right - bottom_left) * x.fraction;
        *to++ = above + (below - above) * y.fraction;
      }
    }
  }
  return out;
}

}  // namespace optfarm::formats
