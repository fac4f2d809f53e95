// JPEG and PNG files to pixels, for all who read pictures: the decoding ops and
// the samples that models are run on. Whoever asks owns the memory, so that it
// counts where the pixels are used.

#ifndef OPTFARM_ENGINE_PICTURES_DECODERS_H_
#define OPTFARM_ENGINE_PICTURES_DECODERS_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace optfarm::pictures {

// UNITS: pixels. Larger pictures are taken for an attack on memory.
inline constexpr int64_t kMaxPixels = int64_t{1} << 26;

// Rows from the top, without gaps; 16-bit samples in this machine's order.
struct Layout {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
  // 8 or 16 for each sample.
  int bits = 8;

  // UNITS: bytes.
  size_t row() const {
    return static_cast<size_t>(width) * static_cast<size_t>(channels) *
           static_cast<size_t>(bits / 8);
  }
  size_t size() const { return row() * static_cast<size_t>(height); }
};

// Gives size() bytes for a picture, nullptr when there are none. Called once,
// when the picture's size was found to be allowed.
using TakeMemory = absl::FunctionRef<uint8_t*(const Layout&)>;

struct JpegOptions {
  // 0 takes what the file has; else 1 (luma) or 3 (RGB).
  int channels = 0;
  // 1, 2, 4 or 8: how many times smaller.
  int ratio = 1;
  bool fancy_upscaling = true;
  bool use_fast_dct = false;
  // Grey pixels stand for what a damaged file lacks.
  bool may_be_truncated = false;
};

struct PngOptions {
  // 0 takes what the file has; else 1 to 4: grey is repeated, colour becomes
  // luma, alpha is dropped or opaque.
  int channels = 0;
  // 8 or 16.
  int bits = 8;
};

// ERRORS: InvalidArgument for bytes that are no whole picture of the format;
// ResourceExhausted for one of more than kMaxPixels, or without memory for it.
absl::Status DecodeJpeg(absl::string_view bytes, const JpegOptions& options,
                        TakeMemory take);
absl::Status DecodePng(absl::string_view bytes, const PngOptions& options,
                       TakeMemory take);

// ResourceExhausted when there are more pixels than kMaxPixels.
absl::Status CheckSize(int64_t height, int64_t width);

}  // namespace optfarm::pictures

#endif  // OPTFARM_ENGINE_PICTURES_DECODERS_H_
