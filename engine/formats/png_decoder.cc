#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/formats/image_decoders.h"

namespace optfarm::formats {
namespace {

// UNITS: bytes. No ancillary chunk of a picture needs more.
constexpr png_alloc_size_t kMaxChunkBytes = 8 << 20;

struct Source {
  absl::string_view left;
  char message[128] = {};
  bool too_large = false;
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

// Asks libpng for 8-bit grey or RGB whatever the file holds.
void SetConversions(png_structp png, png_infop info, int channels) {
  const int type = png_get_color_type(png, info);
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  const bool has_colour = (type & PNG_COLOR_MASK_COLOR) != 0;
  if (channels == 3 && !has_colour) png_set_gray_to_rgb(png);
  // Weights of ITU-R BT.601, as JPEG's luma.
  if (channels == 1 && has_colour) {
    png_set_rgb_to_gray_fixed(png, PNG_ERROR_ACTION_NONE, 29900, 58700);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

// No object with a destructor may live in this frame: longjmp skips them.
bool Decode(png_structp png, png_infop info, int channels, Source* source,
            Image* image, std::vector<png_bytep>* rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
  png_set_chunk_malloc_max(png, kMaxChunkBytes);
  png_set_read_fn(png, source, Read);
  png_read_info(png, info);
  const int64_t height = png_get_image_height(png, info);
  const int64_t width = png_get_image_width(png, info);
  image->height = static_cast<int>(height);
  image->width = static_cast<int>(width);
  if (height > kMaxImagePixels / width) {
    source->too_large = true;
    return false;
  }
  SetConversions(png, info, channels);
  const size_t row = static_cast<size_t>(width) * channels;
  if (png_get_rowbytes(png, info) != row) png_error(png, "unexpected layout");
  image->pixels.resize(row * height);
  rows->resize(height);
  for (int64_t y = 0; y < height; ++y) {
    (*rows)[y] = image->pixels.data() + row * y;
  }
  png_read_image(png, rows->data());
  png_read_end(png, nullptr);
  return true;
}

}  // namespace

absl::StatusOr<Image> DecodePng(absl::string_view bytes, int channels) {
  Source source;
  source.left = bytes;
  Image image;
  image.channels = channels;
  std::vector<png_bytep> rows;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source,
                                           OnError, OnWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return absl::ResourceExhaustedError("no memory to decode a PNG");
  }
  const bool ok = Decode(png, info, channels, &source, &image, &rows);
  png_destroy_read_struct(&png, &info, nullptr);
  if (ok) return image;
  if (source.too_large) return ImageTooLarge(image.height, image.width);
  return absl::InvalidArgumentError(
      absl::StrCat("not a whole PNG: ", source.message));
}

}  // namespace optfarm::formats
