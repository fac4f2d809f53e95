// The columns of a SELECT by name. Names are looked up in the SQL text when the
// program is compiled: a reader of rows says which column it reads, a column
// that the statement does not select is a compile error, and nothing is left to
// do at run time.
//
//   constexpr char kToken[] = "SELECT token_id, name FROM tokens WHERE ...";
//   constexpr SelectColumns kColumns(kToken);
//   ...
//   SqlStatement row = db.Prepare(kToken);
//   while (row.Step()) Use(row.Text(kColumns["name"]));
//
// Statements that share a reader begin with the same SELECT list, which is
// written once, as a macro beside the reader. What selects one value alone is
// read as column 0.

#ifndef OPTFARM_STORAGE_SQL_SELECT_COLUMNS_H_
#define OPTFARM_STORAGE_SQL_SELECT_COLUMNS_H_

#include <array>
#include <cstddef>
#include <string_view>

namespace optfarm::storage {

class SelectColumns {
 public:
  // REQUIRES: "SELECT a, t.b, COUNT(*) AS c FROM ...", a constant with at most
  // 24 columns. Their names are then a, b and c. An expression without AS has
  // no name, only its place.
  consteval explicit SelectColumns(std::string_view sql) {
    if (sql.substr(0, kSelect.size()) != kSelect) SqlIsNoSelect();
    size_t begin = kSelect.size();
    int depth = 0;
    for (size_t at = begin; at < sql.size(); ++at) {
      if (sql[at] == '(') ++depth;
      if (sql[at] == ')') --depth;
      if (depth > 0) continue;
      if (sql[at] == ',') {
        Add(sql.substr(begin, at - begin));
        begin = at + 1;
      } else if (sql.substr(at, kFrom.size()) == kFrom) {
        Add(sql.substr(begin, at - begin));
        return;
      }
    }
    Add(sql.substr(begin));
  }

  // The column's number, as SqlStatement counts. REQUIRES: the statement
  // selects it.
  consteval int operator[](std::string_view name) const {
    for (size_t i = 0; i < count_; ++i) {
      if (names_[i] == name) return static_cast<int>(i);
    }
    NoSuchColumn();
    return -1;
  }

  // The statement's first columns are all those of `other`, in its order: what
  // reads rows of `other` reads rows of this one too.
  consteval bool BeginsWith(const SelectColumns& other) const {
    if (other.count_ > count_) return false;
    for (size_t i = 0; i < other.count_; ++i) {
      if (names_[i] != other.names_[i]) return false;
    }
    return true;
  }

 private:
  static constexpr std::string_view kSelect = "SELECT ";
  static constexpr std::string_view kFrom = " FROM ";

  // Not constexpr: a call from a constant expression is the compiler's error
  // message.
  static void SqlIsNoSelect() {}
  static void TooManyColumns() {}
  static void NoSuchColumn() {}

  consteval void Add(std::string_view column) {
    if (count_ == names_.size()) TooManyColumns();
    // The last word; what ends with a parenthesis was given none.
    const size_t start = column.find_last_of(" .") + 1;
    const bool named = column.back() != ')';
    names_[count_++] = named ? column.substr(start) : std::string_view();
  }

  std::array<std::string_view, 24> names_;
  size_t count_ = 0;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_SELECT_COLUMNS_H_
