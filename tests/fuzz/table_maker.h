// Puts a table with right checksums around what a fuzzer made, so that it gets
// behind them.

#ifndef OPTFARM_TESTS_FUZZ_TABLE_MAKER_H_
#define OPTFARM_TESTS_FUZZ_TABLE_MAKER_H_

#include <cstdint>
#include <map>
#include <string>

#include "engine/formats/files/crc32c.h"

namespace optfarm::testing {

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes += static_cast<char>(value | 0x80);
  }
  return bytes + static_cast<char>(value);
}

// Appends a block with its trailer; returns its handle.
inline std::string AddBlock(const std::string& content, char type,
                            std::string* file) {
  const std::string handle = Varint(file->size()) + Varint(content.size());
  const std::string sealed = content + type;
  const uint32_t crc = formats::MaskCrc(formats::Crc32c(sealed));
  *file += sealed;
  for (int i = 0; i < 4; ++i) *file += static_cast<char>(crc >> (8 * i));
  return handle;
}

inline std::string Entry(const std::string& key, const std::string& value) {
  return Varint(0) + Varint(key.size()) + Varint(value.size()) + key + value;
}

// One restart point, at the begin.
inline std::string WithRestarts(const std::string& entries) {
  return entries + std::string("\0\0\0\0\1\0\0\0", 8);
}

// A table whose one block is `content`.
inline std::string TableOf(const std::string& content, char type) {
  std::string file;
  const std::string block = AddBlock(content, type, &file);
  // No key of the block is above this one.
  const std::string index =
      AddBlock(WithRestarts(Entry(std::string(16, '\xff'), block)), 0, &file);
  std::string footer = block + index;
  footer.resize(40);
  return file + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

inline std::string TableOf(const std::map<std::string, std::string>& entries) {
  std::string content;
  for (const auto& [key, value] : entries) content += Entry(key, value);
  return TableOf(WithRestarts(content), 0);
}

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_FUZZ_TABLE_MAKER_H_
