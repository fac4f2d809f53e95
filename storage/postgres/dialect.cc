#include "storage/postgres/dialect.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace optfarm::storage {
namespace {

constexpr absl::string_view kIndexedBy = "INDEXED BY ";
constexpr absl::string_view kCrossJoin = "CROSS JOIN ";
// A list of numbers, up to the parameter and after it.
constexpr absl::string_view kInList = "IN (SELECT value FROM json_each(";
constexpr absl::string_view kListEnd = "))";

bool IsNamePart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// How much of `rest`, which begins a word, is a hint.
size_t HintAt(absl::string_view rest) {
  if (absl::StartsWith(rest, kIndexedBy)) {
    size_t end = kIndexedBy.size();
    while (end < rest.size() && IsNamePart(rest[end])) ++end;
    return end;
  }
  // It is a JOIN with a condition: only the order is SQLite's.
  if (absl::StartsWith(rest, kCrossJoin)) return kCrossJoin.find("JOIN");
  // Before a column, a plus that adds nothing.
  if (rest.size() > 1 && rest[0] == '+' && absl::ascii_isalpha(rest[1])) {
    return 1;
  }
  return 0;
}

}  // namespace

PostgresText ToPostgres(absl::string_view sql) {
  PostgresText text;
  text.sql.reserve(sql.size());
  bool quoted = false;
  bool in_list = false;
  for (size_t at = 0; at < sql.size(); ++at) {
    const char c = sql[at];
    if (c == '\'') quoted = !quoted;
    const bool starts_word = at > 0 && !IsNamePart(sql[at - 1]);
    if (!quoted && starts_word) {
      const size_t hint = HintAt(sql.substr(at));
      if (hint > 0) {
        at += hint - 1;
        continue;
      }
      if (absl::StartsWith(sql.substr(at), kInList)) {
        text.sql += "= ANY(";
        at += kInList.size() - 1;
        in_list = true;
        continue;
      }
    }
    if (quoted || c != '?') {
      text.sql += c;
      continue;
    }
    int number = 0;
    for (; at + 1 < sql.size() && absl::ascii_isdigit(sql[at + 1]); ++at) {
      number = number * 10 + (sql[at + 1] - '0');
    }
    const auto known =
        std::find(text.parameters.begin(), text.parameters.end(), number);
    absl::StrAppend(&text.sql, "$", known - text.parameters.begin() + 1);
    if (known == text.parameters.end()) text.parameters.push_back(number);
    if (in_list && absl::StartsWith(sql.substr(at + 1), kListEnd)) {
      text.sql += ')';
      at += kListEnd.size();
    }
    in_list = false;
  }
  return text;
}

}  // namespace optfarm::storage
