#include "engine/formats/files/byte_reader.h"

namespace optfarm::formats {

uint32_t ReadFixed32(const char* bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

uint64_t ReadFixed64(const char* bytes) {
  return uint64_t{ReadFixed32(bytes + 4)} << 32 | ReadFixed32(bytes);
}

bool ByteReader::TakeByte(uint8_t* value) {
  if (bytes_.empty()) return false;
  *value = static_cast<uint8_t>(bytes_[0]);
  bytes_.remove_prefix(1);
  return true;
}

bool ByteReader::TakeFixed32(uint32_t* value) {
  if (bytes_.size() < 4) return false;
  *value = ReadFixed32(bytes_.data());
  bytes_.remove_prefix(4);
  return true;
}

bool ByteReader::TakeFixed64(uint64_t* value) {
  if (bytes_.size() < 8) return false;
  *value = ReadFixed64(bytes_.data());
  bytes_.remove_prefix(8);
  return true;
}

bool ByteReader::TakeVarint32(uint32_t* value) {
  const absl::string_view before = bytes_;
  uint64_t wide = 0;
  if (!TakeVarint64(&wide) || wide > UINT32_MAX) {
    bytes_ = before;
    return false;
  }
  *value = static_cast<uint32_t>(wide);
  return true;
}

bool ByteReader::TakeVarint64(uint64_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < 10 && i < bytes_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes_[i]);
    // The tenth byte has one bit to give.
    if (i == 9 && byte > 1) return false;
    result |= uint64_t{byte & 0x7fu} << (7 * i);
    if ((byte & 0x80) == 0) {
      *value = result;
      bytes_.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool ByteReader::TakeBytes(uint64_t count, absl::string_view* value) {
  if (count > bytes_.size()) return false;
  *value = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return true;
}

}  // namespace optfarm::formats
