#include "engine/formats/image_decoders.h"

// jpeglib.h needs size_t and FILE.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optfarm::formats {
namespace {

// libjpeg reports through these; `manager` comes first so that a pointer to it
// is a pointer to the whole.
struct ErrorState {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void OnError(j_common_ptr info) {
  auto* state = reinterpret_cast<ErrorState*>(info->err);
  info->err->format_message(info, state->message);
  std::longjmp(state->jump, 1);
}

// libjpeg goes on after these with grey pixels; a model must not see them.
// Other warnings are about oddities that many good files have.
void OnMessage(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
      code == JWRN_HUFF_BAD_CODE || code == JWRN_NOT_SEQUENTIAL) {
    OnError(info);
  }
}

// No object with a destructor may live in this frame: longjmp skips them.
bool Decode(absl::string_view bytes, int channels, jpeg_decompress_struct* info,
            ErrorState* errors, Image* image) {
  if (setjmp(errors->jump) != 0) return false;
  jpeg_create_decompress(info);
  jpeg_mem_src(info, reinterpret_cast<const unsigned char*>(bytes.data()),
               bytes.size());
  jpeg_read_header(info, TRUE);
  const int64_t height = info->image_height;
  const int64_t width = info->image_width;
  image->height = static_cast<int>(height);
  image->width = static_cast<int>(width);
  if (height * width > kMaxImagePixels) return false;
  info->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(info);
  if (info->output_components != channels) {
    std::snprintf(errors->message, sizeof(errors->message),
                  "unexpected number of channels");
    return false;
  }
  const size_t row = static_cast<size_t>(width) * channels;
  image->pixels.resize(row * height);
  while (info->output_scanline < info->output_height) {
    JSAMPROW line = image->pixels.data() + row * info->output_scanline;
    jpeg_read_scanlines(info, &line, 1);
  }
  jpeg_finish_decompress(info);
  return true;
}

}  // namespace

absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes, int channels) {
  Image image;
  image.channels = channels;
  jpeg_decompress_struct info = {};
  ErrorState errors;
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = OnError;
  errors.manager.emit_message = OnMessage;
  const bool ok = Decode(bytes, channels, &info, &errors, &image);
  jpeg_destroy_decompress(&info);
  if (ok) return image;
  if (errors.message[0] == '\0') {
    return ImageTooLarge(image.height, image.width);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("not a whole JPEG: ", errors.message));
}

}  // namespace optfarm::formats
