#include "engine/runtime/kernels/picture.h"

// jpeglib.h needs size_t and FILE.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::runtime {
namespace {

// libjpeg reports through the manager, which comes first so that a pointer to
// it is a pointer to the whole.
struct Reader {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = {};
  bool may_be_truncated = false;
  bool is_too_large = false;
};

[[noreturn]] void OnError(j_common_ptr info) {
  auto* reader = reinterpret_cast<Reader*>(info->err);
  info->err->format_message(info, reader->message);
  std::longjmp(reader->jump, 1);
}

// Warnings that mean missing picture data, for which grey would stand in.
void OnMessage(j_common_ptr info, int level) {
  if (level >= 0) return;
  const auto* reader = reinterpret_cast<Reader*>(info->err);
  const int code = info->err->msg_code;
  const bool is_damage = code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
                         code == JWRN_HUFF_BAD_CODE;
  if (is_damage && !reader->may_be_truncated) OnError(info);
}

int ChannelsOf(const jpeg_decompress_struct& info, const JpegOptions& options) {
  if (options.channels != 0) return options.channels;
  return info.num_components == 1 ? 1 : 3;
}

// No object with a destructor may live in this frame: longjmp skips them.
bool Decode(absl::string_view bytes, const JpegOptions& options,
            jpeg_decompress_struct* info, Reader* reader, Picture* picture) {
  if (setjmp(reader->jump) != 0) return false;
  jpeg_create_decompress(info);
  jpeg_mem_src(info, reinterpret_cast<const unsigned char*>(bytes.data()),
               bytes.size());
  jpeg_read_header(info, TRUE);
  picture->height = info->image_height;
  picture->width = info->image_width;
  reader->is_too_large =
      picture->height > kMaxPicturePixels / (picture->width + 1);
  if (reader->is_too_large) return false;
  picture->channels = ChannelsOf(*info, options);
  // Inverted CMYK, as cameras' software writes it, is not RGB to libjpeg.
  const bool is_cmyk = info->num_components == 4;
  if (is_cmyk) {
    std::snprintf(reader->message, sizeof(reader->message),
                  "CMYK pictures are not read");
    return false;
  }
  info->out_color_space = picture->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info->scale_num = 1;
  info->scale_denom = static_cast<unsigned>(options.ratio);
  info->do_fancy_upsampling = options.fancy_upscaling ? TRUE : FALSE;
  info->dct_method = options.use_fast_dct ? JDCT_IFAST : JDCT_ISLOW;
  jpeg_start_decompress(info);
  picture->height = info->output_height;
  picture->width = info->output_width;
  const size_t row = static_cast<size_t>(picture->width) *
                     static_cast<size_t>(info->output_components);
  picture->bytes.resize(row * static_cast<size_t>(picture->height));
  while (info->output_scanline < info->output_height) {
    JSAMPROW line = picture->bytes.data() + row * info->output_scanline;
    jpeg_read_scanlines(info, &line, 1);
  }
  jpeg_finish_decompress(info);
  return true;
}

}  // namespace

absl::Status CheckPictureSize(int64_t height, int64_t width) {
  if (height >= 0 && width >= 0 && height <= kMaxPicturePixels / (width + 1)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the picture has ", height, " x ", width,
                   " pixels; at most ", kMaxPicturePixels, " are read"));
}

absl::StatusOr<Picture> DecodeJpeg(absl::string_view bytes,
                                   const JpegOptions& options) {
  Picture picture;
  jpeg_decompress_struct info = {};
  Reader reader;
  info.err = jpeg_std_error(&reader.manager);
  reader.manager.error_exit = OnError;
  reader.manager.emit_message = OnMessage;
  reader.may_be_truncated = options.may_be_truncated;
  const bool ok = Decode(bytes, options, &info, &reader, &picture);
  jpeg_destroy_decompress(&info);
  if (ok) return picture;
  if (reader.is_too_large) {
    return CheckPictureSize(picture.height, picture.width);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("not a whole JPEG: ", reader.message));
}

}  // namespace optfarm::runtime
