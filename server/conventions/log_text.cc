#include "server/conventions/log_text.h"

#include <algorithm>
#include <cstdint>

namespace optfarm::server {
namespace {

uint8_t ByteAt(absl::string_view bytes, size_t index) {
  return static_cast<uint8_t>(bytes[index]);
}

// Length of the UTF-8 character at the beginning of `bytes`; 0 when there is
// none. Overlong forms, surrogates and values over U+10FFFF are not characters.
size_t CharacterLength(absl::string_view bytes) {
  const uint8_t first = ByteAt(bytes, 0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((ByteAt(bytes, i) & 0xc0) != 0x80) return 0;
  }
  const uint8_t second = ByteAt(bytes, 1);
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second >= 0xa0) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second >= 0x90) return 0;
  return length;
}

}  // namespace

std::string ToUtf8(absl::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = CharacterLength(bytes);
    if (length == 0) {
      text.append("\xef\xbf\xbd");
      bytes.remove_prefix(1);
    } else {
      text.append(bytes.data(), length);
      bytes.remove_prefix(length);
    }
  }
  return text;
}

absl::string_view CutText(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (ByteAt(text, end) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace optfarm::server
