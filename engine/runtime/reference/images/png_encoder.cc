#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "engine/runtime/reference/images/picture_encoders.h"

namespace optfarm::runtime {
namespace {

struct Sink {
  std::string bytes;
  char message[128] = {};
};

void OnError(png_structp png, png_const_charp message) {
  auto* sink = static_cast<Sink*>(png_get_error_ptr(png));
  std::snprintf(sink->message, sizeof(sink->message), "%s", message);
  png_longjmp(png, 1);
}

void OnWarning(png_structp, png_const_charp) {}

void Write(png_structp png, png_bytep bytes, size_t count) {
  auto* sink = static_cast<Sink*>(png_get_io_ptr(png));
  sink->bytes.append(reinterpret_cast<const char*>(bytes), count);
}

void Flush(png_structp) {}

// No object with a destructor may live in this frame: longjmp skips them.
bool Encode(png_structp png, png_infop info, const Pixels& pixels,
            int compression, Sink* sink) {
  static constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY,
                                    PNG_COLOR_TYPE_GRAY_ALPHA,
                                    PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGBA};
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_write_fn(png, sink, Write, Flush);
  png_set_compression_level(png, compression);
  png_set_IHDR(png, info, static_cast<png_uint_32>(pixels.width),
               static_cast<png_uint_32>(pixels.height), pixels.bits,
               kColors[pixels.channels - 1], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (pixels.bits == 16 && std::endian::native == std::endian::little) {
    png_set_swap(png);
  }
  const int64_t row = pixels.width * pixels.channels * pixels.bits / 8;
  for (int64_t y = 0; y < pixels.height; ++y) {
    png_write_row(png, pixels.bytes + y * row);
  }
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

absl::StatusOr<std::string> EncodePng(const Pixels& pixels, int compression) {
  Sink sink;
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink, OnError, OnWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_write_struct(&png, nullptr);
    return absl::ResourceExhaustedError("no memory to encode a PNG");
  }
  const bool ok = Encode(png, info, pixels, compression, &sink);
  png_destroy_write_struct(&png, &info);
  if (ok) return std::move(sink.bytes);
  return absl::InvalidArgumentError(
      absl::StrCat("cannot be written as a PNG: ", sink.message));
}

}  // namespace optfarm::runtime
