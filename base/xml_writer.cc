#include "base/xml_writer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "base/number_text.h"
#include "base/utf8.h"

namespace optfarm {
namespace {

// By byte: it stands for itself, in content and in values of attributes.
constexpr std::array<bool, 256> kIsPlain = [] {
  std::array<bool, 256> plain = {};
  for (size_t c = 0x20; c < 0x7F; ++c) plain[c] = true;
  for (const char c : {'<', '>', '&', '"', '\''}) {
    plain[static_cast<uint8_t>(c)] = false;
  }
  return plain;
}();

absl::string_view EscapeOf(char c) {
  switch (c) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '&':
      return "&amp;";
    case '"':
      return "&quot;";
    case '\'':
      return "&apos;";
    // A reader makes blanks of these where they are not escaped.
    case '\t':
      return "&#9;";
    case '\n':
      return "&#10;";
    case '\r':
      return "&#13;";
    default:
      return "?";
  }
}

// U+FFFE and U+FFFF are UTF-8, but not XML.
bool IsNoCharacter(absl::string_view sequence) {
  return sequence == "\xEF\xBF\xBE" || sequence == "\xEF\xBF\xBF";
}

// Not inline: the writer would be 8 KB of code instead of 3.
ABSL_ATTRIBUTE_NOINLINE void Append(absl::string_view text, std::string& out) {
  out.append(text.data(), text.size());
}

void AppendEscaped(absl::string_view text, std::string& out) {
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && kIsPlain[static_cast<uint8_t>(text[plain])]) {
      ++plain;
    }
    Append(text.substr(0, plain), out);
    text.remove_prefix(plain);
    if (text.empty()) return;
    const size_t length = std::max<size_t>(1, Utf8SequenceLength(text));
    const absl::string_view sequence = text.substr(0, length);
    const bool escaped = length == 1 || IsNoCharacter(sequence);
    Append(escaped ? EscapeOf(text[0]) : sequence, out);
    text.remove_prefix(length);
  }
}

}  // namespace

XmlWriter& XmlWriter::Begin(absl::string_view name) {
  if (in_start_tag_) {
    EndStartTag();
    Append("\n", out_);
  }
  Append("<", out_);
  Append(name, out_);
  open_.push_back(name);
  in_start_tag_ = true;
  return *this;
}

XmlWriter& XmlWriter::Attribute(absl::string_view name,
                                absl::string_view value) {
  BeginAttribute(name);
  AppendEscaped(value, out_);
  Append("\"", out_);
  return *this;
}

XmlWriter& XmlWriter::Attribute(absl::string_view name, double value,
                                int decimals) {
  BeginAttribute(name);
  AppendFixed(value, decimals, out_);
  Append("\"", out_);
  return *this;
}

XmlWriter& XmlWriter::IntegerAttribute(absl::string_view name, int64_t value) {
  BeginAttribute(name);
  absl::StrAppend(&out_, value);
  Append("\"", out_);
  return *this;
}

XmlWriter& XmlWriter::Text(absl::string_view text) {
  EndStartTag();
  AppendEscaped(text, out_);
  return *this;
}

XmlWriter& XmlWriter::End() {
  if (in_start_tag_) {
    Append("/>\n", out_);
    in_start_tag_ = false;
  } else {
    Append("</", out_);
    Append(open_.back(), out_);
    Append(">\n", out_);
  }
  open_.pop_back();
  return *this;
}

void XmlWriter::BeginAttribute(absl::string_view name) {
  Append(" ", out_);
  Append(name, out_);
  Append("=\"", out_);
}

void XmlWriter::EndStartTag() {
  if (in_start_tag_) Append(">", out_);
  in_start_tag_ = false;
}

}  // namespace optfarm
