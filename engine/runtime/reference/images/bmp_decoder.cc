#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/images/picture.h"

namespace optfarm::runtime {
namespace {

// The header's fields that are read, all little-endian.
constexpr size_t kPixelsAt = 10;
constexpr size_t kWidthAt = 18;
constexpr size_t kHeightAt = 22;
constexpr size_t kBitsAt = 28;
constexpr size_t kCompressionAt = 30;
constexpr size_t kHeaderSize = 34;

uint32_t Word(absl::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) {
    word |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  }
  return word;
}

absl::Status NoBmp(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a whole BMP: ", why));
}

}  // namespace

absl::StatusOr<Picture> DecodeBmp(absl::string_view bytes, int channels) {
  if (bytes.size() < kHeaderSize || bytes.substr(0, 2) != "BM") {
    return NoBmp("it does not begin with a BMP header");
  }
  Picture picture;
  picture.width = static_cast<int32_t>(Word(bytes, kWidthAt));
  const int64_t height = static_cast<int32_t>(Word(bytes, kHeightAt));
  // A negative height means rows from the top.
  picture.height = height < 0 ? -height : height;
  const int bits = static_cast<int>(Word(bytes, kBitsAt) & 0xffff);
  if (bits != 8 && bits != 24 && bits != 32) {
    return NoBmp(absl::StrCat(bits, " bits per pixel are not read"));
  }
  if (Word(bytes, kCompressionAt) != 0) return NoBmp("it is compressed");
  if (picture.width < 1 || picture.height < 1) return NoBmp("it is empty");
  OPTFARM_RETURN_IF_ERROR(pictures::CheckSize(picture.height, picture.width));
  picture.channels = bits / 8;
  if (channels != 0 && channels != picture.channels) {
    return NoBmp(absl::StrCat("it has ", picture.channels,
                              " channels, but the node asks for ", channels));
  }
  const int64_t row = picture.width * picture.channels;
  const int64_t padded_row = (row + 3) / 4 * 4;
  const uint64_t begin = Word(bytes, kPixelsAt);
  if (begin > bytes.size() ||
      bytes.size() - begin <
          static_cast<uint64_t>(padded_row * (picture.height - 1) + row)) {
    return NoBmp("the file is cut off");
  }
  picture.bytes.resize(static_cast<size_t>(row * picture.height));
  for (int64_t y = 0; y < picture.height; ++y) {
    const int64_t from_row = height < 0 ? y : picture.height - 1 - y;
    const char* from = bytes.data() + begin + from_row * padded_row;
    uint8_t* to = picture.bytes.data() + y * row;
    for (int64_t i = 0; i < row; i += picture.channels) {
      for (int c = 0; c < picture.channels; ++c) {
        // Blue, green, red in the file.
        const int source = picture.channels >= 3 && c < 3 ? 2 - c : c;
        to[i + c] = static_cast<uint8_t>(from[i + source]);
      }
    }
  }
  return picture;
}

}  // namespace optfarm::runtime
