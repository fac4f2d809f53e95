#include "engine/pictures/decoders.h"

// jpeglib.h needs size_t and FILE.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace optfarm::pictures {
namespace {

// What libjpeg reports through; it comes first so that a pointer to it is a
// pointer to the whole.
struct Errors {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = {};
  bool may_be_truncated = false;
};

[[noreturn]] void OnError(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

// Warnings that mean missing picture data, for which grey would stand in. The
// others are about oddities that many good files have.
void OnMessage(j_common_ptr info, int level) {
  if (level >= 0) return;
  const auto* errors = reinterpret_cast<Errors*>(info->err);
  const int code = info->err->msg_code;
  const bool is_damage = code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
                         code == JWRN_HUFF_BAD_CODE;
  if (is_damage && !errors->may_be_truncated) OnError(info);
}

class Reader {
 public:
  explicit Reader(bool may_be_truncated) {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = OnError;
    errors_.manager.emit_message = OnMessage;
    errors_.may_be_truncated = may_be_truncated;
  }
  // Also when the memory's owner threw.
  ~Reader() { jpeg_destroy_decompress(&info_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // False when the file is no whole JPEG. No object with a destructor may live
  // in these two frames: longjmp skips them.
  bool ReadHeader(absl::string_view bytes, int channels) {
    // Before the jump, which may undo changes of what is in registers.
    channels_ = channels;
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()),
                 bytes.size());
    jpeg_read_header(&info_, TRUE);
    // Inverted CMYK, as cameras' software writes it, is not RGB to libjpeg.
    if (info_.num_components == 4) return Fail("CMYK pictures are not read");
    if (channels_ == 0) channels_ = info_.num_components == 1 ? 1 : 3;
    return true;
  }
  bool Decode(const JpegOptions& options, TakeMemory take) {
    if (setjmp(errors_.jump) != 0) return false;
    info_.out_color_space = channels_ == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(options.ratio);
    info_.do_fancy_upsampling = options.fancy_upscaling ? TRUE : FALSE;
    info_.dct_method = options.use_fast_dct ? JDCT_IFAST : JDCT_ISLOW;
    jpeg_start_decompress(&info_);
    if (info_.output_components != channels_) {
      return Fail("unexpected number of channels");
    }
    const Layout layout = {info_.output_height, info_.output_width, channels_};
    uint8_t* const pixels = take(layout);
    has_memory_ = pixels != nullptr;
    if (!has_memory_) return false;
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW line = pixels + layout.row() * info_.output_scanline;
      jpeg_read_scanlines(&info_, &line, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  int64_t height() const { return info_.image_height; }
  int64_t width() const { return info_.image_width; }
  absl::Status Error() const {
    if (!has_memory_) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no memory for the pixels of a JPEG of ", height(), " x ", width()));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("not a whole JPEG: ", errors_.message));
  }

 private:
  bool Fail(const char* why) {
    std::snprintf(errors_.message, sizeof(errors_.message), "%s", why);
    return false;
  }

  jpeg_decompress_struct info_ = {};
  Errors errors_;
  int channels_ = 0;
  bool has_memory_ = true;
};

}  // namespace

absl::Status DecodeJpeg(absl::string_view bytes, const JpegOptions& options,
                        TakeMemory take) {
  Reader reader(options.may_be_truncated);
  if (!reader.ReadHeader(bytes, options.channels)) return reader.Error();
  const absl::Status size = CheckSize(reader.height(), reader.width());
  if (!size.ok()) return size;
  return reader.Decode(options, take) ? absl::OkStatus() : reader.Error();
}

}  // namespace optfarm::pictures
