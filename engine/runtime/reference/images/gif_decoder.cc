// GIF through giflib, frame by frame over one canvas: a frame covers its part
// of the picture before it, and its transparent points let that one through.
// A file of its own because the library may be left out (OPTFARM_EXTRA_OPS).

#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/reference/images/gif.h"
#include "engine/runtime/reference/images/picture.h"

namespace optfarm::runtime {
namespace {

struct Closer {
  void operator()(GifFileType* file) const {
    int error = 0;
    DGifCloseFile(file, &error);
  }
};
using File = std::unique_ptr<GifFileType, Closer>;

int Read(GifFileType* file, GifByteType* out, int count) {
  auto* left = static_cast<absl::string_view*>(file->UserData);
  const size_t size = std::min(left->size(), static_cast<size_t>(count));
  std::memcpy(out, left->data(), size);
  left->remove_prefix(size);
  return static_cast<int>(size);
}

absl::Status NoGif(int error) {
  const char* reason = GifErrorString(error);
  return absl::InvalidArgumentError(absl::StrCat(
      "not a whole GIF: ", reason == nullptr ? "cut off" : reason));
}

// What stands before a frame: which of its colors is transparent.
absl::Status ReadExtension(GifFileType* file, int* transparent) {
  int code = 0;
  GifByteType* bytes = nullptr;
  if (DGifGetExtension(file, &code, &bytes) != GIF_OK) {
    return NoGif(file->Error);
  }
  while (bytes != nullptr) {
    if (code == GRAPHICS_EXT_FUNC_CODE && bytes[0] >= 4) {
      *transparent = (bytes[1] & 1) != 0 ? bytes[4] : NO_TRANSPARENT_COLOR;
    }
    if (DGifGetExtensionNext(file, &bytes) != GIF_OK) return NoGif(file->Error);
  }
  return absl::OkStatus();
}

class Canvas {
 public:
  Canvas(GifFileType* file, Picture* picture) : file_(file), to_(*picture) {}

  // Draws the frame whose description the file is at.
  absl::Status Draw(int transparent, uint8_t* pixels) {
    if (DGifGetImageDesc(file_) != GIF_OK) return NoGif(file_->Error);
    const GifImageDesc& frame = file_->Image;
    colors_ = frame.ColorMap != nullptr ? frame.ColorMap : file_->SColorMap;
    if (colors_ == nullptr) {
      return absl::InvalidArgumentError("a GIF's frame has no colors");
    }
    if (frame.Width <= 0 || frame.Height <= 0 || frame.Left < 0 ||
        frame.Top < 0) {
      return absl::InvalidArgumentError("a GIF's frame has no size");
    }
    line_.resize(static_cast<size_t>(frame.Width));
    // Interlaced rows come in four passes.
    static constexpr int kBegin[] = {0, 4, 2, 1};
    static constexpr int kStep[] = {8, 8, 4, 2};
    for (int pass = 0; pass < (frame.Interlace ? 4 : 1); ++pass) {
      const int step = frame.Interlace ? kStep[pass] : 1;
      for (int y = frame.Interlace ? kBegin[pass] : 0; y < frame.Height;
           y += step) {
        LeaveIfRunEnded();
        if (DGifGetLine(file_, line_.data(), frame.Width) != GIF_OK) {
          return NoGif(file_->Error);
        }
        OPTFARM_RETURN_IF_ERROR(DrawLine(frame, y, transparent, pixels));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status DrawLine(const GifImageDesc& frame, int y, int transparent,
                        uint8_t* pixels) const {
    const int64_t row = int64_t{frame.Top} + y;
    if (row >= to_.height) return absl::OkStatus();
    const int64_t width =
        std::min<int64_t>(frame.Width, to_.width - frame.Left);
    for (int64_t x = 0; x < width; ++x) {
      const int index = line_[static_cast<size_t>(x)];
      if (index == transparent) continue;
      if (index >= colors_->ColorCount) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a GIF's frame uses color ", index, " of ", colors_->ColorCount));
      }
      const GifColorType& color = colors_->Colors[index];
      uint8_t* to = pixels + (row * to_.width + frame.Left + x) * 3;
      to[0] = color.Red;
      to[1] = color.Green;
      to[2] = color.Blue;
    }
    return absl::OkStatus();
  }

  GifFileType* const file_;
  const Picture& to_;
  const ColorMapObject* colors_ = nullptr;
  std::vector<GifPixelType> line_;
};

}  // namespace

absl::StatusOr<Animation> DecodeGif(absl::string_view bytes) {
  int error = 0;
  const File file(DGifOpen(&bytes, Read, &error));
  if (file == nullptr) return NoGif(error);
  Animation animation;
  Picture& picture = animation.picture;
  picture.height = file->SHeight;
  picture.width = file->SWidth;
  picture.channels = 3;
  const size_t frame_bytes =
      static_cast<size_t>(picture.height * picture.width) * 3;
  Canvas canvas(file.get(), &picture);
  int transparent = NO_TRANSPARENT_COLOR;
  GifRecordType record = UNDEFINED_RECORD_TYPE;
  while (record != TERMINATE_RECORD_TYPE) {
    if (DGifGetRecordType(file.get(), &record) != GIF_OK) {
      return NoGif(file->Error);
    }
    if (record == EXTENSION_RECORD_TYPE) {
      OPTFARM_RETURN_IF_ERROR(ReadExtension(file.get(), &transparent));
    }
    if (record != IMAGE_DESC_RECORD_TYPE) continue;
    ++animation.frames;
    OPTFARM_RETURN_IF_ERROR(
        pictures::CheckSize(picture.height * animation.frames, picture.width));
    picture.bytes.resize(frame_bytes * static_cast<size_t>(animation.frames));
    uint8_t* to = picture.bytes.data() + picture.bytes.size() - frame_bytes;
    if (animation.frames > 1) std::memcpy(to, to - frame_bytes, frame_bytes);
    OPTFARM_RETURN_IF_ERROR(canvas.Draw(transparent, to));
    transparent = NO_TRANSPARENT_COLOR;
  }
  if (animation.frames > 0) return animation;
  return absl::InvalidArgumentError("a GIF without a frame");
}

}  // namespace optfarm::runtime
