#include "base/utf8.h"

#include <cstdint>

namespace optfarm {

size_t Utf8SequenceLength(absl::string_view text) {
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  const auto continues = [&byte](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      if ((byte(i) & 0xC0) != 0x80) return false;
    }
    return true;
  };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1, 2) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const uint8_t least = lead == 0xE0 ? 0xA0 : 0x80;
    const uint8_t most = lead == 0xED ? 0x9F : 0xBF;
    return byte(1) >= least && byte(1) <= most && continues(2, 3) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const uint8_t least = lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t most = lead == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= least && byte(1) <= most && continues(2, 4) ? 4 : 0;
  }
  return 0;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string ReplaceInvalidUtf8(absl::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t length = text[0] == '\0' ? 0 : Utf8SequenceLength(text);
    if (length == 0) {
      valid += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      valid.append(text.data(), length);
      text.remove_prefix(length);
    }
  }
  return valid;
}

}  // namespace optfarm
