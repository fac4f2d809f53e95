#include "client_cli/tables/row_writer.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/json_string.h"
#include "base/number_text.h"

namespace optfarm::client_cli {
namespace {

// More than any measurement has, fewer than rounding errors show in.
constexpr int kDigits = 9;

// What a spreadsheet takes for a formula, which it would run when the file is
// opened. https://owasp.org/www-community/attacks/CSV_Injection
bool IsFormula(absl::string_view text) {
  double number;
  return !text.empty() && absl::StrContains("=+-@\t\r", text[0]) &&
         !absl::SimpleAtod(text, &number);
}

void AppendCsvText(absl::string_view text, std::string& out) {
  if (IsFormula(text)) return AppendCsvText(absl::StrCat("'", text), out);
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) {
    return c == ',' || c == '"' || c == '\r' || c == '\n';
  });
  if (plain) {
    absl::StrAppend(&out, text);
  } else {
    absl::StrAppend(&out, "\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}),
                    "\"");
  }
}

}  // namespace

RowWriter::RowWriter(absl::Span<const std::string> columns, OutputFormat format)
    : columns_(columns.size()) {
  OPTFARM_CHECK(format != OutputFormat::kTable && !columns.empty());
  if (format == OutputFormat::kJson) {
    text_.push_back('[');
    for (const std::string& column : columns) {
      openings_.push_back(absl::StrCat(openings_.empty() ? "  {" : ", ",
                                       JsonString(column), ": "));
    }
    return;
  }
  if (!format.headers) return;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) text_.push_back(',');
    AppendCsvText(columns[i], text_);
  }
  text_.push_back('\n');
}

inline void RowWriter::Begin() {
  if (json()) {
    if (column_ == 0) text_.append(any_rows_ ? ",\n" : "\n");
    text_.append(openings_[column_]);
  } else if (column_ > 0) {
    text_.push_back(',');
  }
}

inline void RowWriter::End() {
  if (++column_ < columns_) return;
  text_.push_back(json() ? '}' : '\n');
  column_ = 0;
  any_rows_ = true;
}

void RowWriter::Unknown() {
  Begin();
  if (json()) text_.append("null");
  End();
}

void RowWriter::Bool(bool value) {
  Begin();
  text_.append(value ? "true" : "false");
  End();
}

void RowWriter::Integer(int64_t value) {
  Begin();
  absl::StrAppend(&text_, value);
  End();
}

void RowWriter::Number(double value) {
  if (!std::isfinite(value)) return Unknown();
  Begin();
  AppendNumber(value, kDigits, text_);
  End();
}

void RowWriter::Text(absl::string_view value) {
  Begin();
  if (json()) {
    AppendJsonString(value, text_);
  } else {
    AppendCsvText(value, text_);
  }
  End();
}

void RowWriter::MoveTo(std::ostream& out) {
  out << text_;
  text_.clear();
}

std::string RowWriter::Finish() && {
  OPTFARM_CHECK(column_ == 0);
  if (json()) text_.append(any_rows_ ? "\n]\n" : "]\n");
  return std::move(text_);
}

}  // namespace optfarm::client_cli
