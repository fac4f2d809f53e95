#include "http/url_text.h"

#include "absl/strings/ascii.h"
#include "base/utf8.h"

namespace optfarm::http {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

absl::StatusOr<std::string> PercentDecode(absl::string_view text,
                                          bool plus_is_blank) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      decoded.push_back(' ');
    } else if (text[i] != '%') {
      decoded.push_back(text[i]);
    } else {
      const int high = i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return absl::InvalidArgumentError(
            "the address has a '%' that no two hexadecimal digits follow");
      }
      decoded.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
  }
  if (!IsUtf8(decoded)) {
    return absl::InvalidArgumentError("the address is not UTF-8 when decoded");
  }
  return decoded;
}

}  // namespace optfarm::http
