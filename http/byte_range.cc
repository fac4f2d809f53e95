#include "http/byte_range.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace optfarm::http {
namespace {

// Digits only: no sign, no blanks.
bool ParseOffset(absl::string_view text, int64_t* value) {
  return !text.empty() && absl::ascii_isdigit(text.front()) &&
         absl::SimpleAtoi(text, value);
}

// Cuts `*text` at `separator` and returns what was before it.
std::optional<absl::string_view> CutAt(char separator,
                                       absl::string_view* text) {
  const size_t at = text->find(separator);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view before = text->substr(0, at);
  text->remove_prefix(at + 1);
  return before;
}

}  // namespace

absl::StatusOr<SentRange> ParseContentRange(absl::string_view header) {
  absl::string_view rest = absl::StripAsciiWhitespace(header);
  SentRange range;
  int64_t last = 0;
  if (absl::ConsumePrefix(&rest, "bytes ")) {
    const auto first_text = CutAt('-', &rest);
    const auto last_text = CutAt('/', &rest);
    if (first_text && last_text && ParseOffset(*first_text, &range.offset) &&
        ParseOffset(*last_text, &last) && ParseOffset(rest, &range.total) &&
        last >= range.offset && last < range.total) {
      range.length = last - range.offset + 1;
      return range;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "Content-Range is '", absl::CHexEscape(header.substr(0, 100)),
      "', not as in 'bytes 0-1048575/4194304' with the first byte, the last "
      "byte and the length of the whole file"));
}

WantedRange ParseRange(absl::string_view header, int64_t total) {
  WantedRange range;
  absl::string_view rest = absl::StripAsciiWhitespace(header);
  // Of what it does not understand, or several parts, a server may send all.
  if (!absl::ConsumePrefix(&rest, "bytes=")) return range;
  const auto first = CutAt('-', &rest);
  if (!first) return range;
  int64_t begin = 0;
  int64_t end = total - 1;
  if (first->empty()) {
    int64_t count = 0;
    if (!ParseOffset(rest, &count)) return range;
    begin = std::max<int64_t>(0, total - count);
    range.unsatisfiable = count == 0;
  } else {
    if (!ParseOffset(*first, &begin)) return range;
    if (!rest.empty() && (!ParseOffset(rest, &end) || end < begin)) {
      return range;
    }
    end = std::min(end, total - 1);
  }
  range.all = false;
  range.unsatisfiable = range.unsatisfiable || begin >= total;
  range.offset = begin;
  range.length = range.unsatisfiable ? 0 : end - begin + 1;
  return range;
}

}  // namespace optfarm::http
