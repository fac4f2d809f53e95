#include "storage/sql/table_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/node_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace optfarm::storage {
namespace {

// UNITS: rows and bytes of one transaction.
constexpr int64_t kMostRows = 4000;
constexpr size_t kMostBytes = size_t{16} << 20;

constexpr char kUnfinished[] = "unfinished_copy";
// What a database knows about itself.
constexpr std::array<const char*, 4> kNoRecords = {"schema_version", "leader",
                                                   "results_gone", kUnfinished};
// Tables that others refer to, in this order; then all others.
constexpr std::array<const char*, 6> kFirst = {
    "jobs", "tasks", "devices", "series", "graphs", "environments"};
constexpr char kMeasurements[] = "measurements";

template <size_t n>
size_t PlaceIn(const std::array<const char*, n>& names,
               const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) -
                             names.begin());
}

size_t Rank(const std::string& table) {
  return PlaceIn(kFirst, table) * 2 + (table == kMeasurements ? 0 : 1);
}

// Statements are known by their address. Made of names that the schema has.
const char* Constant(std::string sql) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto& texts = *new absl::node_hash_set<std::string>();
  absl::MutexLock lock(&mutex);
  return texts.insert(std::move(sql)).first->c_str();
}

struct Value {
  bool is_null = true;
  int64_t number = 0;
  double real = 0;
  std::string bytes;
};

Value Read(const SqlStatement& row, int column, char kind) {
  Value value;
  value.is_null = row.IsNull(column);
  if (value.is_null) return value;
  if (kind == 'i') {
    value.number = row.Int(column);
  } else if (kind == 'd') {
    value.real = row.Double(column);
  } else {
    value.bytes = row.Text(column);
  }
  return value;
}

void Bind(SqlStatement& statement, int parameter, char kind,
          const Value& value) {
  if (value.is_null) return statement.BindNull(parameter);
  switch (kind) {
    case 'i':
      return statement.BindInt(parameter, value.number);
    case 'd':
      return statement.BindDouble(parameter, value.real);
    case 't':
      return statement.BindText(parameter, value.bytes);
    default:
      return statement.BindBlob(parameter, value.bytes);
  }
}

std::vector<SqlColumn> KeysOf(const SqlTable& table) {
  std::vector<SqlColumn> keys;
  for (const SqlColumn& column : table.columns) {
    if (column.key > 0) keys.push_back(column);
  }
  std::sort(
      keys.begin(), keys.end(),
      [](const SqlColumn& a, const SqlColumn& b) { return a.key < b.key; });
  return keys;
}

std::string Names(const std::vector<SqlColumn>& columns,
                  absl::string_view after = "") {
  return absl::StrJoin(columns, ", ",
                       [after](std::string* out, const SqlColumn& column) {
                         absl::StrAppend(out, column.name, after);
                       });
}

// "?1, ?2, ?3"
std::string Parameters(size_t count) {
  std::string text;
  for (size_t i = 1; i <= count; ++i) {
    absl::StrAppend(&text, i == 1 ? "?" : ", ?", i);
  }
  return text;
}

// The keys of the last row; none: there is no row.
absl::StatusOr<std::vector<Value>> LastKeys(const SqlTable& table,
                                            const SqlSide& side) {
  const std::vector<SqlColumn> keys = KeysOf(table);
  SqlTransaction transaction(*side.db, SqlTransaction::Mode::kRead);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  std::vector<Value> values;
  SqlStatement last = side.db->Prepare(
      Constant(absl::StrCat("SELECT ", Names(keys), " FROM ", table.name,
                            " ORDER BY ", Names(keys, " DESC"), " LIMIT 1")));
  if (last.Step()) {
    for (size_t i = 0; i < keys.size(); ++i) {
      values.push_back(Read(last, static_cast<int>(i), keys[i].kind));
    }
  }
  OPTFARM_RETURN_IF_ERROR(last.status());
  return values;
}

// The rows after `after` in the order of keys.
const char* RowsSql(const SqlTable& table, bool from_the_beginning) {
  const std::vector<SqlColumn> keys = KeysOf(table);
  const std::string condition =
      from_the_beginning ? ""
                         : absl::StrCat(" WHERE (", Names(keys), ") > (",
                                        Parameters(keys.size()), ")");
  return Constant(absl::StrCat("SELECT ", Names(table.columns), " FROM ",
                               table.name, condition, " ORDER BY ",
                               Names(keys)));
}

// One transaction's rows, while `rows` has some; sets `ended` when it has no
// more: a statement that has ended would begin anew. Returns how many.
absl::StatusOr<int64_t> CopySome(const SqlTable& table, SqlStatement& rows,
                                 SqlDatabase& to, bool& ended) {
  const char* const sql = Constant(
      absl::StrCat("INSERT INTO ", table.name, " (", Names(table.columns),
                   ") VALUES (", Parameters(table.columns.size()), ")"));
  SqlTransaction transaction(to);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  int64_t count = 0;
  for (size_t bytes = 0; count < kMostRows && bytes < kMostBytes; ++count) {
    if (ended = !rows.Step(); ended) break;
    SqlStatement insert = to.Prepare(sql);
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const int column = static_cast<int>(i);
      const Value value = Read(rows, column, table.columns[i].kind);
      bytes += value.bytes.size() + sizeof(value.number);
      Bind(insert, column + 1, table.columns[i].kind, value);
    }
    OPTFARM_RETURN_IF_ERROR(insert.RunLater());
  }
  OPTFARM_RETURN_IF_ERROR(rows.status());
  OPTFARM_RETURN_IF_ERROR(transaction.Commit());
  return count;
}

absl::StatusOr<int64_t> OneNumber(SqlDatabase& db, const char* sql,
                                  const std::string& table,
                                  const std::string& column) {
  SqlTransaction transaction(db, SqlTransaction::Mode::kRead);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  SqlStatement query = db.Prepare(sql);
  query.BindText(1, table);
  query.BindText(2, column);
  const int64_t number = query.Step() ? query.Int(0) : 0;
  OPTFARM_RETURN_IF_ERROR(query.status());
  return number;
}

// Rows that have gone keep their numbers: none is given twice.
absl::Status CopyLastNumber(const SqlTable& table, const SqlSide& from,
                            const SqlSide& to) {
  const std::vector<SqlColumn> keys = KeysOf(table);
  if (keys.size() != 1 || keys[0].kind != 'i') return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(
      const int64_t given,
      OneNumber(*from.db, from.catalog->last_number, table.name, keys[0].name));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Value> last, LastKeys(table, to));
  const int64_t number = std::max(given, last.empty() ? 0 : last[0].number);
  if (number == 0) return absl::OkStatus();
  SqlTransaction transaction(*to.db);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  for (const char* sql :
       {to.catalog->set_last_number, to.catalog->set_last_number_too}) {
    if (sql == nullptr) continue;
    SqlStatement set = to.db->Prepare(sql);
    set.BindText(1, table.name);
    set.BindText(2, keys[0].name);
    set.BindInt(3, number);
    OPTFARM_RETURN_IF_ERROR(set.Run());
  }
  return transaction.Commit();
}

void AddTo(Sha256& sha, char kind, const Value& value) {
  std::string text(1, value.is_null ? 'n' : kind);
  if (!value.is_null && kind == 'i') absl::StrAppend(&text, value.number);
  if (!value.is_null && kind == 'd') {
    uint64_t bits = 0;
    std::memcpy(&bits, &value.real, sizeof(bits));
    absl::StrAppend(&text, bits);
  }
  const std::string bytes =
      kind == 't' ? ReplaceInvalidUtf8(value.bytes) : value.bytes;
  absl::StrAppend(&text, " ", bytes.size(), ":");
  sha.Update(text);
  sha.Update(bytes);
}

absl::StatusOr<std::vector<std::string>> TableNames(const SqlSide& side) {
  SqlTransaction transaction(*side.db, SqlTransaction::Mode::kRead);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  std::vector<std::string> names;
  SqlStatement query = side.db->Prepare(side.catalog->tables);
  while (query.Step()) names.push_back(query.Text(0));
  OPTFARM_RETURN_IF_ERROR(query.status());
  return names;
}

absl::StatusOr<SqlTable> ReadTable(const SqlSide& side, std::string name) {
  SqlTransaction transaction(*side.db, SqlTransaction::Mode::kRead);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  SqlTable table{std::move(name), {}};
  SqlStatement query = side.db->Prepare(side.catalog->columns);
  query.BindText(1, table.name);
  while (query.Step()) {
    SqlColumn& column = table.columns.emplace_back();
    column.name = query.Text(0);
    column.kind = query.Text(1).empty() ? '?' : query.Text(1)[0];
    column.key = static_cast<int>(query.Int(2));
    if (absl::string_view("idtb").find(column.kind) == std::string::npos) {
      return absl::InternalError(absl::StrCat("the column ", table.name, ".",
                                              column.name,
                                              " has a type that is not known"));
    }
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  if (!KeysOf(table).empty()) return table;
  return absl::InternalError(
      absl::StrCat("the table ", table.name, " has no primary key"));
}

absl::Status RunAlone(SqlDatabase& db, const char* sql) {
  SqlTransaction transaction(db);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  {
    SqlStatement statement = db.Prepare(sql);
    OPTFARM_RETURN_IF_ERROR(statement.Run());
  }
  return transaction.Commit();
}

}  // namespace

absl::StatusOr<std::vector<SqlTable>> RecordTables(const SqlSide& side) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<std::string> names, TableNames(side));
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) {
              return std::pair(Rank(a), a) < std::pair(Rank(b), b);
            });
  std::vector<SqlTable> tables;
  for (std::string& name : names) {
    if (PlaceIn(kNoRecords, name) < kNoRecords.size()) continue;
    OPTFARM_ASSIGN_OR_RETURN(SqlTable table, ReadTable(side, std::move(name)));
    tables.push_back(std::move(table));
  }
  return tables;
}

absl::StatusOr<int64_t> CopyRows(const SqlTable& table, const SqlSide& from,
                                 const SqlSide& to,
                                 const std::function<void(int64_t)>& copied) {
  const std::vector<SqlColumn> keys = KeysOf(table);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Value> last, LastKeys(table, to));
  int64_t count = 0;
  {
    SqlTransaction reading(*from.db, SqlTransaction::Mode::kRead);
    OPTFARM_RETURN_IF_ERROR(reading.status());
    SqlStatement rows = from.db->Prepare(RowsSql(table, last.empty()),
                                         SqlDatabase::Rows::kMany);
    for (size_t i = 0; i < last.size(); ++i) {
      Bind(rows, static_cast<int>(i) + 1, keys[i].kind, last[i]);
    }
    bool ended = false;
    while (!ended) {
      OPTFARM_ASSIGN_OR_RETURN(const int64_t some,
                               CopySome(table, rows, *to.db, ended));
      count += some;
      copied(some);
    }
  }
  OPTFARM_RETURN_IF_ERROR(CopyLastNumber(table, from, to));
  return count;
}

absl::StatusOr<bool> HasRows(const SqlTable& table, const SqlSide& side) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Value> last,
                           LastKeys(table, side));
  return !last.empty();
}

absl::StatusOr<TableDigest> DigestOf(const SqlTable& table,
                                     const SqlSide& side) {
  SqlTransaction transaction(*side.db, SqlTransaction::Mode::kRead);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  TableDigest digest;
  Sha256 sha;
  SqlStatement rows = side.db->Prepare(
      RowsSql(table, /*from_the_beginning=*/true), SqlDatabase::Rows::kMany);
  while (rows.Step()) {
    ++digest.rows;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const char kind = table.columns[i].kind;
      AddTo(sha, kind, Read(rows, static_cast<int>(i), kind));
    }
  }
  OPTFARM_RETURN_IF_ERROR(rows.status());
  digest.sha256 = sha.Finish();
  return digest;
}

absl::StatusOr<std::string> UnfinishedCopyOf(const SqlSide& side) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           TableNames(side));
  if (std::find(names.begin(), names.end(), kUnfinished) == names.end()) {
    return "";
  }
  SqlTransaction transaction(*side.db, SqlTransaction::Mode::kRead);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  SqlStatement query = side.db->Prepare("SELECT source FROM unfinished_copy");
  std::string source = query.Step() ? query.Text(0) : "";
  OPTFARM_RETURN_IF_ERROR(query.status());
  return source;
}

absl::Status MarkUnfinished(const SqlSide& side, const std::string& source) {
  SqlTransaction transaction(*side.db);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  {
    SqlStatement make =
        side.db->Prepare("CREATE TABLE unfinished_copy (source TEXT NOT NULL)");
    OPTFARM_RETURN_IF_ERROR(make.Run());
  }
  {
    SqlStatement insert =
        side.db->Prepare("INSERT INTO unfinished_copy VALUES (?1)");
    insert.BindText(1, source);
    OPTFARM_RETURN_IF_ERROR(insert.Run());
  }
  return transaction.Commit();
}

absl::Status MarkFinished(const SqlSide& side) {
  return RunAlone(*side.db, "DROP TABLE unfinished_copy");
}

}  // namespace optfarm::storage
