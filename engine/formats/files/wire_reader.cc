#include "engine/formats/files/wire_reader.h"

namespace optfarm::formats {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

// Lengths beyond this are no message that protobuf could hold.
constexpr uint64_t kMaxLength = uint64_t{1} << 31;

}  // namespace

bool WireReader::ReadVarint(size_t* at, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (*at >= bytes_.size()) {
      Fail(/*truncated=*/true, 0);
      return false;
    }
    const auto byte = static_cast<unsigned char>(bytes_[(*at)++]);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  Fail(/*truncated=*/false, 0);
  return false;
}

std::optional<WireField> WireReader::Fail(bool truncated, uint64_t missing) {
  malformed_ = true;
  truncated_ = truncated;
  missing_bytes_ = missing;
  return std::nullopt;
}

std::optional<WireField> WireReader::Next() {
  if (malformed_ || position_ == bytes_.size()) return std::nullopt;
  size_t at = position_;
  uint64_t tag = 0;
  if (!ReadVarint(&at, &tag)) return std::nullopt;
  const uint64_t number = tag >> 3;
  if (number == 0 || number > (uint64_t{1} << 29) - 1) return Fail(false, 0);
  WireField field;
  field.number = static_cast<int>(number);
  uint64_t length = 0;
  switch (tag & 7) {
    case kVarint:
      if (!ReadVarint(&at, &length)) return std::nullopt;
      length = 0;
      break;
    case kFixed64:
      length = 8;
      break;
    case kFixed32:
      length = 4;
      break;
    case kLengthDelimited:
      if (!ReadVarint(&at, &length)) return std::nullopt;
      if (length >= kMaxLength) return Fail(false, 0);
      field.is_bytes = true;
      break;
    default:
      return Fail(false, 0);
  }
  const size_t left = bytes_.size() - at;
  if (length > left) return Fail(true, length - left);
  if (field.is_bytes) field.bytes = bytes_.substr(at, length);
  position_ = at + length;
  return field;
}

}  // namespace optfarm::formats
