#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/pictures/decoders.h"

namespace optfarm::pictures {
namespace {

// UNITS: bytes. No ancillary chunk of a picture needs more.
constexpr png_alloc_size_t kMaxChunkBytes = 8 << 20;

struct Source {
  absl::string_view left;
  char message[128] = {};
};

void OnError(png_structp png, png_const_charp message) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::snprintf(source->message, sizeof(source->message), "%s", message);
  png_longjmp(png, 1);
}

void OnWarning(png_structp, png_const_charp) {}

void Read(png_structp png, png_bytep out, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (source->left.size() < count) png_error(png, "the file is cut off");
  std::memcpy(out, source->left.data(), count);
  source->left.remove_prefix(count);
}

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : source_{bytes} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, OnError,
                                  OnWarning);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    has_memory_ = info_ != nullptr;
  }
  // Also when the memory's owner threw.
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // False when the file is no whole PNG. No object with a destructor may live
  // in these two frames: longjmp skips them.
  bool ReadHeader() {
    if (!has_memory_) return false;
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png_, kMaxChunkBytes);
    png_set_read_fn(png_, &source_, Read);
    png_read_info(png_, info_);
    return true;
  }
  bool Decode(const PngOptions& options, TakeMemory take) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const int channels =
        options.channels == 0 ? OwnChannels() : options.channels;
    SetConversions(channels, options.bits);
    const Layout layout = {height(), width(), channels, options.bits};
    if (png_get_rowbytes(png_, info_) != layout.row()) {
      png_error(png_, "unexpected layout");
    }
    uint8_t* const pixels = take(layout);
    has_memory_ = pixels != nullptr;
    if (!has_memory_) return false;
    rows_.resize(static_cast<size_t>(layout.height));
    for (size_t y = 0; y < rows_.size(); ++y) {
      rows_[y] = pixels + layout.row() * y;
    }
    png_read_image(png_, rows_.data());
    png_read_end(png_, nullptr);
    return true;
  }

  int64_t height() const { return png_get_image_height(png_, info_); }
  int64_t width() const { return png_get_image_width(png_, info_); }
  absl::Status Error() const {
    if (!has_memory_) {
      return absl::ResourceExhaustedError("no memory to decode a PNG");
    }
    return absl::InvalidArgumentError(
        absl::StrCat("not a whole PNG: ", source_.message));
  }

 private:
  int OwnChannels() const {
    const int type = png_get_color_type(png_, info_);
    const bool has_alpha = (type & PNG_COLOR_MASK_ALPHA) != 0 ||
                           png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    return ((type & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1) + (has_alpha ? 1 : 0);
  }

  // Asks libpng for the channels and bits whatever the file holds.
  void SetConversions(int channels, int bits) {
    const int own = OwnChannels();
    const bool is_color = own >= 3;
    const bool has_alpha = own % 2 == 0;
    png_set_expand(png_);
    if (bits == 8) png_set_strip_16(png_);
    if (bits == 16) {
      png_set_expand_16(png_);
      if (std::endian::native == std::endian::little) png_set_swap(png_);
    }
    const bool wants_alpha = channels % 2 == 0;
    if (has_alpha && !wants_alpha) png_set_strip_alpha(png_);
    if (!has_alpha && wants_alpha) {
      png_set_add_alpha(png_, bits == 8 ? 0xff : 0xffff, PNG_FILLER_AFTER);
    }
    if (channels >= 3 && !is_color) png_set_gray_to_rgb(png_);
    // Weights of ITU-R BT.601, as JPEG's luma.
    if (channels < 3 && is_color) {
      png_set_rgb_to_gray_fixed(png_, PNG_ERROR_ACTION_NONE, 29900, 58700);
    }
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  bool has_memory_ = false;
  std::vector<png_bytep> rows_;
};

}  // namespace

absl::Status DecodePng(absl::string_view bytes, const PngOptions& options,
                       TakeMemory take) {
  Reader reader(bytes);
  if (!reader.ReadHeader()) return reader.Error();
  const absl::Status size = CheckSize(reader.height(), reader.width());
  if (!size.ok()) return size;
  return reader.Decode(options, take) ? absl::OkStatus() : reader.Error();
}

}  // namespace optfarm::pictures
