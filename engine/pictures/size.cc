#include "absl/strings/str_cat.h"
#include "engine/pictures/decoders.h"

namespace optfarm::pictures {

absl::Status CheckSize(int64_t height, int64_t width) {
  const bool is_allowed =
      height >= 0 && width >= 0 && (width == 0 || height <= kMaxPixels / width);
  if (is_allowed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the picture has ", height, " x ", width,
                   " pixels; at most ", kMaxPixels, " are read"));
}

}  // namespace optfarm::pictures
