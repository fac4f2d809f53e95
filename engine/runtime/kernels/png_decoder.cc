#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/kernels/picture.h"

namespace optfarm::runtime {
namespace {

// UNITS: bytes. No ancillary chunk of a picture needs more.
constexpr png_alloc_size_t kMaxChunkBytes = 8 << 20;

struct Source {
  absl::string_view left;
  char message[128] = {};
  bool is_too_large = false;
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

int ChannelsOf(png_structp png, png_infop info) {
  const int type = png_get_color_type(png, info);
  const bool has_alpha = (type & PNG_COLOR_MASK_ALPHA) != 0 ||
                         png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  return ((type & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1) + (has_alpha ? 1 : 0);
}

// Asks libpng for the channels and bits whatever the file holds.
void SetConversions(png_structp png, png_infop info, int channels, int bits) {
  const int own = ChannelsOf(png, info);
  const bool is_color = own >= 3;
  const bool has_alpha = own % 2 == 0;
  png_set_expand(png);
  if (bits == 8) png_set_strip_16(png);
  if (bits == 16) {
    png_set_expand_16(png);
    if (std::endian::native == std::endian::little) png_set_swap(png);
  }
  const bool wants_alpha = channels % 2 == 0;
  if (has_alpha && !wants_alpha) png_set_strip_alpha(png);
  if (!has_alpha && wants_alpha) {
    png_set_add_alpha(png, bits == 8 ? 0xff : 0xffff, PNG_FILLER_AFTER);
  }
  if (channels >= 3 && !is_color) png_set_gray_to_rgb(png);
  // Weights of ITU-R BT.601, as JPEG's luma.
  if (channels < 3 && is_color) {
    png_set_rgb_to_gray_fixed(png, PNG_ERROR_ACTION_NONE, 29900, 58700);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

// No object with a destructor may live in this frame: longjmp skips them.
bool Decode(png_structp png, png_infop info, int channels, int bits,
            Source* source, Picture* picture, std::vector<png_bytep>* rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
  png_set_chunk_malloc_max(png, kMaxChunkBytes);
  png_set_read_fn(png, source, Read);
  png_read_info(png, info);
  picture->height = png_get_image_height(png, info);
  picture->width = png_get_image_width(png, info);
  source->is_too_large =
      picture->height > kMaxPicturePixels / (picture->width + 1);
  if (source->is_too_large) return false;
  picture->channels = channels == 0 ? ChannelsOf(png, info) : channels;
  SetConversions(png, info, picture->channels, bits);
  const size_t row = static_cast<size_t>(picture->width) *
                     static_cast<size_t>(picture->channels) *
                     static_cast<size_t>(bits / 8);
  if (png_get_rowbytes(png, info) != row) png_error(png, "unexpected layout");
  picture->bytes.resize(row * static_cast<size_t>(picture->height));
  rows->resize(static_cast<size_t>(picture->height));
  for (size_t y = 0; y < rows->size(); ++y) {
    (*rows)[y] = picture->bytes.data() + row * y;
  }
  png_read_image(png, rows->data());
  png_read_end(png, nullptr);
  return true;
}

}  // namespace

absl::StatusOr<Picture> DecodePng(absl::string_view bytes, int channels,
                                  int bits) {
  Source source;
  source.left = bytes;
  Picture picture;
  std::vector<png_bytep> rows;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source,
                                           OnError, OnWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return absl::ResourceExhaustedError("no memory to decode a PNG");
  }
  const bool ok = Decode(png, info, channels, bits, &source, &picture, &rows);
  png_destroy_read_struct(&png, &info, nullptr);
  if (ok) return picture;
  if (source.is_too_large) {
    return CheckPictureSize(picture.height, picture.width);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("not a whole PNG: ", source.message));
}

}  // namespace optfarm::runtime
