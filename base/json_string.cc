#include "base/json_string.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace optfarm {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

// Stands for itself.
bool IsPlain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

void AppendAscii(char c, std::string* out) {
  switch (c) {
    case '"':
      out->append("\\\"");
      return;
    case '\\':
      out->append("\\\\");
      return;
    case '\n':
      out->append("\\n");
      return;
    case '\r':
      out->append("\\r");
      return;
    case '\t':
      out->append("\\t");
      return;
    default:
      break;
  }
  if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
    absl::StrAppend(out, "\\u",
                    absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad4));
  } else {
    out->push_back(c);
  }
}

}  // namespace

std::string JsonString(absl::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

void AppendJsonString(absl::string_view text, std::string& out) {
  out.push_back('"');
  while (!text.empty()) {
    const auto plain = static_cast<size_t>(
        std::find_if_not(text.begin(), text.end(), IsPlain) - text.begin());
    out.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t length = Utf8SequenceLength(text);
    if (length == 1) {
      AppendAscii(text[0], &out);
    } else {
      absl::StrAppend(&out,
                      length == 0 ? kReplacement : text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out.push_back('"');
}

std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  // Not StrFormat: small runtimes would carry all of it for this line.
  char text[32];
  const int size = std::snprintf(text, sizeof(text), "%.12g", value);
  return std::string(text, static_cast<size_t>(size));
}

}  // namespace optfarm
