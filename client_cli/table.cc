#include "client_cli/table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/json_string.h"

namespace optfarm::client_cli {
namespace {

// UNITS: character positions. Counts code points; good enough for the names and
// units that are printed here.
size_t DisplayWidth(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
}

// More digits than any measurement has, fewer than rounding errors show in.
constexpr char kNumber[] = "%.9g";

struct ToJsonText {
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const {
    return std::isfinite(value) ? absl::StrFormat(kNumber, value) : "null";
  }
  std::string operator()(const std::string& value) const {
    return JsonString(value);
  }
};

bool NeedsQuotes(char c) {
  return c == ',' || c == '"' || c == '\r' || c == '\n';
}

// Appends a field; tables may have hundreds of thousands.
struct AppendCsv {
  void operator()(std::monostate) const {}
  void operator()(bool value) const {
    absl::StrAppend(out, value ? "true" : "false");
  }
  void operator()(int64_t value) const { absl::StrAppend(out, value); }
  void operator()(double value) const {
    if (std::isfinite(value)) absl::StrAppendFormat(out, kNumber, value);
  }
  void operator()(const std::string& value) const {
    if (std::none_of(value.begin(), value.end(), NeedsQuotes)) {
      out->append(value);
      return;
    }
    absl::StrAppend(out, "\"", absl::StrReplaceAll(value, {{"\"", "\"\""}}),
                    "\"");
  }

  std::string* out;
};

void AppendAligned(const std::string& text, size_t width, Table::Align align,
                   std::string* line) {
  const size_t used = DisplayWidth(text);
  const std::string padding(width > used ? width - used : 0, ' ');
  absl::StrAppend(line, align == Table::Align::kRight ? padding : "", text,
                  align == Table::Align::kLeft ? padding : "");
}

}  // namespace

Cell Cell::Text(absl::string_view text) {
  return Cell(std::string(text), text.empty() ? "-" : std::string(text));
}

Cell Cell::Integer(int64_t number) {
  return Cell(number, absl::StrCat(number));
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(std::vector<Cell> row) {
  OPTFARM_CHECK(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::ToText() const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) lines[0].push_back(column.title);
  for (const std::vector<Cell>& row : rows_) {
    lines.emplace_back();
    for (const Cell& cell : row) {
      lines.back().push_back(PrintableLine(cell.text));
    }
  }
  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(line[i]));
    }
  }
  std::string text;
  for (const auto& line : lines) {
    std::string printed;
    for (size_t i = 0; i < line.size(); ++i) {
      if (i > 0) absl::StrAppend(&printed, "  ");
      AppendAligned(line[i], widths[i], columns_[i].align, &printed);
    }
    printed.erase(printed.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, printed, "\n");
  }
  return text;
}

std::string Table::ToCsv() const {
  std::string text;
  const AppendCsv append{&text};
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) text += ',';
    append(columns_[i].name);
  }
  text += '\n';
  for (const std::vector<Cell>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      std::visit(append, row[i].value);
    }
    text += '\n';
  }
  return text;
}

std::string Table::ToJson() const {
  if (rows_.empty()) return "[]\n";
  std::string text = "[\n";
  for (size_t r = 0; r < rows_.size(); ++r) {
    absl::StrAppend(&text, "  {");
    for (size_t c = 0; c < columns_.size(); ++c) {
      absl::StrAppend(&text, c > 0 ? ", " : "", JsonString(columns_[c].name),
                      ": ", std::visit(ToJsonText(), rows_[r][c].value));
    }
    absl::StrAppend(&text, r + 1 < rows_.size() ? "},\n" : "}\n");
  }
  absl::StrAppend(&text, "]\n");
  return text;
}

std::string Table::ToFormat(OutputFormat format) const {
  switch (format) {
    case OutputFormat::kJson:
      return ToJson();
    case OutputFormat::kCsv:
      return ToCsv();
    case OutputFormat::kTable:
      break;
  }
  return ToText();
}

std::string JsonString(absl::string_view text) {
  return optfarm::JsonString(text);
}

std::string PrintableLine(absl::string_view text) {
  std::string line = PrintableText(text);
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

std::string PrintableText(absl::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (c == '\n' || c == '\t') continue;
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return printable;
}

}  // namespace optfarm::client_cli
