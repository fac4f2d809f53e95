// Pictures from files, for the decoding ops. One decoder a format; each checks
// the picture's size before it takes memory.

#ifndef OPTFARM_ENGINE_RUNTIME_KERNELS_PICTURE_H_
#define OPTFARM_ENGINE_RUNTIME_KERNELS_PICTURE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/counted_vector.h"

namespace optfarm::runtime {

// Larger pictures are taken for an attack on memory.
inline constexpr int64_t kMaxPicturePixels = int64_t{1} << 26;

struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
  // Rows from the top, without gaps; 16-bit samples in this machine's order.
  CountedVector<uint8_t> bytes;
};

struct JpegOptions {
  // 0 takes what the file has; else 1 or 3.
  int channels = 0;
  // 1, 2, 4 or 8: how many times smaller.
  int ratio = 1;
  bool fancy_upscaling = true;
  bool use_fast_dct = false;
  // Grey pixels stand for what a damaged file lacks.
  bool may_be_truncated = false;
};

// ERRORS: InvalidArgument for bytes that are no whole picture of the format;
// ResourceExhausted for one of more than kMaxPicturePixels pixels.
absl::StatusOr<Picture> DecodeJpeg(absl::string_view bytes,
                                   const JpegOptions& options);
// `channels` 0 takes what the file has; else 1 to 4. `bits` is 8 or 16.
absl::StatusOr<Picture> DecodePng(absl::string_view bytes, int channels,
                                  int bits);
// `channels` 0 takes what the file has; else 1, 3 or 4, which must be it.
absl::StatusOr<Picture> DecodeBmp(absl::string_view bytes, int channels);

// ResourceExhausted when there are more pixels than that.
absl::Status CheckPictureSize(int64_t height, int64_t width);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_KERNELS_PICTURE_H_
