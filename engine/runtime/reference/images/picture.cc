#include "engine/runtime/reference/images/picture.h"

#include "base/status_macros.h"

namespace optfarm::runtime {
namespace {

// Pixels in memory that counts against the run's budget.
class InPicture {
 public:
  explicit InPicture(Picture* picture) : picture_(picture) {}
  uint8_t* operator()(const pictures::Layout& layout) const {
    picture_->height = layout.height;
    picture_->width = layout.width;
    picture_->channels = layout.channels;
    picture_->bytes.resize(layout.size());
    return picture_->bytes.data();
  }

 private:
  Picture* const picture_;
};

}  // namespace

absl::StatusOr<Picture> DecodeJpeg(absl::string_view bytes,
                                   const pictures::JpegOptions& options) {
  Picture picture;
  OPTFARM_RETURN_IF_ERROR(
      pictures::DecodeJpeg(bytes, options, InPicture(&picture)));
  return picture;
}

absl::StatusOr<Picture> DecodePng(absl::string_view bytes,
                                  const pictures::PngOptions& options) {
  Picture picture;
  OPTFARM_RETURN_IF_ERROR(
      pictures::DecodePng(bytes, options, InPicture(&picture)));
  return picture;
}

}  // namespace optfarm::runtime
