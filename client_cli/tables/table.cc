#include "client_cli/tables/table.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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

// Appends a cell's value.
struct AppendValue {
  void operator()(std::monostate) const { rows.Unknown(); }
  void operator()(bool value) const { rows.Bool(value); }
  void operator()(int64_t value) const { rows.Integer(value); }
  void operator()(double value) const { rows.Number(value); }
  void operator()(const std::string& value) const { rows.Text(value); }

  RowWriter& rows;
};

// Leaves at most so many characters, the last of them dots; 0: any number.
void CutTo(size_t most, std::string& text) {
  if (most == 0 || DisplayWidth(text) <= most) return;
  size_t end = 0;
  size_t shown = 0;
  while (end < text.size() && shown < most - 2) {
    // A character is its first byte with those that continue it.
    do ++end;
    while (end < text.size() && (text[end] & 0xC0) == 0x80);
    ++shown;
  }
  text.resize(end);
  text += "..";
}

void AppendAligned(const std::string& text, size_t width, Table::Align align,
                   std::string* line) {
  const size_t used = DisplayWidth(text);
  const std::string padding(width > used ? width - used : 0, ' ');
  absl::StrAppend(line, align == Table::Align::kRight ? padding : "", text,
                  align == Table::Align::kLeft ? padding : "");
}

// UNITS: characters. Texts are not folded narrower than this.
constexpr size_t kLeastFolded = 20;

// `text` in parts of at most `width` characters, between words where it has
// any.
std::vector<std::string> Folded(absl::string_view text, size_t width) {
  std::vector<std::string> parts;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!parts.empty() &&
        DisplayWidth(parts.back()) + 1 + DisplayWidth(word) <= width) {
      absl::StrAppend(&parts.back(), " ", word);
    } else {
      parts.emplace_back(word);
    }
  }
  if (parts.empty()) parts.emplace_back();
  return parts;
}

size_t TotalWidth(const std::vector<size_t>& widths) {
  size_t total = 0;
  for (const size_t width : widths) total += width + 2;
  return total == 0 ? 0 : total - 2;
}

std::vector<size_t> WidthsOf(
    const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()), 0);
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(line[i]));
    }
  }
  return widths;
}

// Gives column `folding` further lines, so that the whole fits where it can.
void Fold(size_t folding, size_t width,
          std::vector<std::vector<std::string>>* lines) {
  const std::vector<size_t> widths = WidthsOf(*lines);
  const size_t total = TotalWidth(widths);
  if (total <= width) return;
  const size_t others = total - widths[folding];
  const size_t room =
      std::max(kLeastFolded, width > others ? width - others : 0);
  std::vector<std::vector<std::string>> folded;
  for (std::vector<std::string>& line : *lines) {
    const std::vector<std::string> parts = Folded(line[folding], room);
    for (size_t i = 0; i < parts.size(); ++i) {
      folded.push_back(i == 0 ? line : std::vector<std::string>(line.size()));
      folded.back()[folding] = parts[i];
    }
  }
  *lines = std::move(folded);
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

std::vector<std::vector<std::string>> Table::ShownLines(bool headings,
                                                        bool wide,
                                                        int width) const {
  const auto shows = [&](size_t i) { return wide || !columns_[i].only_wide; };
  std::vector<std::vector<std::string>> lines;
  if (headings) {
    std::vector<std::string>& line = lines.emplace_back();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (shows(i)) line.push_back(columns_[i].title);
    }
  }
  for (const std::vector<Cell>& row : rows_) {
    std::vector<std::string>& line = lines.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      if (!shows(i)) continue;
      line.push_back(PrintableLine(row[i].text));
      if (!wide) CutTo(columns_[i].most, line.back());
    }
  }
  size_t shown = 0;
  for (size_t i = 0; i < columns_.size() && !lines.empty(); ++i) {
    if (!shows(i)) continue;
    if (columns_[i].folds && !wide && width > 0) {
      Fold(shown, static_cast<size_t>(width), &lines);
    }
    ++shown;
  }
  return lines;
}

std::string Table::ToText(bool headings, bool wide, int width) const {
  const std::vector<std::vector<std::string>> lines =
      ShownLines(headings, wide, width);
  std::vector<Align> aligns;
  for (const Column& column : columns_) {
    if (wide || !column.only_wide) aligns.push_back(column.align);
  }
  const std::vector<size_t> widths = WidthsOf(lines);
  std::string text;
  for (const auto& line : lines) {
    std::string printed;
    for (size_t i = 0; i < line.size(); ++i) {
      if (i > 0) absl::StrAppend(&printed, "  ");
      AppendAligned(line[i], widths[i], aligns[i], &printed);
    }
    printed.erase(printed.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, printed, "\n");
  }
  return text;
}

std::string Table::ToFormat(OutputFormat format) const {
  if (format == OutputFormat::kTable)
    return ToText(format.headers, format.wide, format.width);
  std::vector<std::string> names;
  for (const Column& column : columns_) names.push_back(column.name);
  RowWriter writer(names, format);
  for (const std::vector<Cell>& row : rows_) {
    for (const Cell& cell : row) std::visit(AppendValue{writer}, cell.value);
  }
  return std::move(writer).Finish();
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
