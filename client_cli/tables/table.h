// A small table that is printed for people or emitted for programs. The three
// forms come from the same rows: text shows each cell's words, CSV and JSON its
// value under the column's stable name, which carries the unit ("median_us").

#ifndef OPTFARM_CLIENT_CLI_TABLES_TABLE_H_
#define OPTFARM_CLIENT_CLI_TABLES_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "client_cli/tables/row_writer.h"

namespace optfarm::client_cli {

// One cell: its value for programs and its words for people.
struct Cell {
  // monostate: not known; null in JSON, empty in CSV, "-" in text.
  using Value =
      std::variant<std::monostate, bool, int64_t, double, std::string>;

  Cell() = default;
  Cell(Value cell_value, std::string cell_text)
      : value(std::move(cell_value)), text(std::move(cell_text)) {}
  // A cell whose words are its value.
  static Cell Text(absl::string_view text);
  static Cell Integer(int64_t number);

  Value value;
  std::string text = "-";
};

class Table {
 public:
  enum class Align { kLeft, kRight };

  struct Column {
    // Stable field name with the unit: lower case, digits and '_'.
    std::string name;
    // Heading for people.
    std::string title;
    Align align = Align::kLeft;
    // A table for people has it only where that is asked to be wide.
    bool only_wide = false;
    // UNITS: characters of a text that such a table shows otherwise; 0: all.
    size_t most = 0;
    // The column whose texts go on in further lines where the terminal is
    // narrower than the table. One a table.
    bool folds = false;
  };

  explicit Table(std::vector<Column> columns);

  // REQUIRES: as many cells as there are columns.
  void AddRow(std::vector<Cell> row);

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<Cell>>& rows() const { return rows_; }

  // Heading and rows, columns two blanks apart, numbers to the right, no blanks
  // at the end of a line. Control characters in cells are shown as '?', so that
  // a name made by somebody else cannot steer the terminal.
  // Unless it is to be wide, without the columns that are only for that, and
  // with long texts cut. `width`: what the folding column makes room for, as
  // far as it can; 0: anything.
  std::string ToText(bool headings = true, bool wide = true,
                     int width = 0) const;

  // As RowWriter says.
  std::string ToCsv() const { return ToFormat(OutputFormat::kCsv); }
  std::string ToJson() const { return ToFormat(OutputFormat::kJson); }

  std::string ToFormat(OutputFormat format) const;

 private:
  std::vector<std::vector<std::string>> ShownLines(bool headings, bool wide,
                                                   int width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// `text` as a JSON string with its quotation marks; bytes that are not UTF-8
// become U+FFFD.
std::string JsonString(absl::string_view text);

// `text` with control characters replaced by '?' (newlines and tabs by blanks).
std::string PrintableLine(absl::string_view text);

// The same for text of several lines: newlines and tabs stay.
std::string PrintableText(absl::string_view text);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_TABLE_H_
