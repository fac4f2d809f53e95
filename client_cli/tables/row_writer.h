// Writes rows of values as CSV or JSON, each value as it comes: output of many
// thousands of rows need not be in memory.

#ifndef OPTFARM_CLIENT_CLI_TABLES_ROW_WRITER_H_
#define OPTFARM_CLIENT_CLI_TABLES_ROW_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optfarm::client_cli {

// How commands print what they know. Compares and switches as its kind.
struct OutputFormat {
  enum Kind { kTable, kJson, kCsv };

  constexpr OutputFormat(Kind kind_of = kTable)  // NOLINT: stands for it
      : kind(kind_of) {}
  constexpr operator Kind() const { return kind; }  // NOLINT: stands for it

  Kind kind;
  // Tables and CSV begin with a line of headings.
  bool headers = true;
  // Tables have every column, however wide that is.
  bool wide = false;
  // UNITS: characters of the terminal's lines, which tables are folded into;
  // 0: none, or lines of any length.
  int width = 0;
};

// CSV: RFC 4180 with '\n' line ends; first line: column names. A text that a
// spreadsheet would run as a formula begins with an apostrophe. JSON: an array
// of objects, one a row, fields in column order; numbers that JSON cannot say
// (NaN, infinity) are null.
class RowWriter {
 public:
  // REQUIRES: kJson or kCsv; at least one column.
  RowWriter(absl::Span<const std::string> columns, OutputFormat format);

  // The row's next value; the last column's ends the row.
  void Unknown();
  void Bool(bool value);
  void Integer(int64_t value);
  void Number(double value);
  void Text(absl::string_view value);

  // Moves what has been written so far.
  void MoveTo(std::ostream& out);
  // What has been written since. REQUIRES: rows are complete.
  std::string Finish() &&;

 private:
  bool json() const { return !openings_.empty(); }
  void Begin();
  void End();

  const size_t columns_;
  // What JSON has before each column's value; empty for CSV.
  std::vector<std::string> openings_;
  size_t column_ = 0;
  bool any_rows_ = false;
  std::string text_;
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_ROW_WRITER_H_
