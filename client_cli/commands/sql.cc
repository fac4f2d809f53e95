// optctl sql: one SELECT on the results store.

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"

namespace optfarm::client_cli {
namespace {

Cell CellOf(const v1::SqlValue& value) {
  switch (value.value_case()) {
    case v1::SqlValue::kInteger:
      return Cell::Integer(value.integer());
    case v1::SqlValue::kReal:
      return Cell(value.real(), absl::StrCat(value.real()));
    case v1::SqlValue::kText:
      return Cell::Text(value.text());
    case v1::SqlValue::kBlob:
      return Cell::Text(absl::BytesToHexString(value.blob()));
    case v1::SqlValue::VALUE_NOT_SET:
      break;
  }
  return Cell();
}

bool IsNumber(const v1::QuerySqlResponse& response, int column) {
  for (const v1::SqlRow& row : response.rows()) {
    const v1::SqlValue& value = row.values(column);
    if (value.has_text() || value.has_blob()) return false;
  }
  return true;
}

Table MakeTable(const v1::QuerySqlResponse& response) {
  std::vector<Table::Column> columns;
  for (int i = 0; i < response.columns_size(); ++i) {
    columns.push_back(
        {response.columns(i), response.columns(i),
         IsNumber(response, i) ? Table::Align::kRight : Table::Align::kLeft});
  }
  Table table(std::move(columns));
  for (const v1::SqlRow& row : response.rows()) {
    std::vector<Cell> cells;
    for (const v1::SqlValue& value : row.values()) {
      cells.push_back(CellOf(value));
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

absl::Status CheckShape(const v1::QuerySqlResponse& response) {
  for (const v1::SqlRow& row : response.rows()) {
    if (row.values_size() != response.columns_size()) {
      return absl::InternalError(
          "the server's answer has rows of different length");
    }
  }
  return absl::OkStatus();
}

class Sql final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("SELECT", "The query, in quotes.", &sql_);
    flags->Integer("limit", "Maximum number of rows. Default: 1000.", &limit_,
                   1, 100'000);
    flags->Duration("timeout",
                    "Time limit of the query, up to 60s. Default: 5s.",
                    &timeout_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    v1::QuerySqlRequest request;
    request.set_sql(sql_);
    request.set_max_rows(static_cast<int32_t>(limit_));
    request.set_max_milliseconds(static_cast<int32_t>(
        std::min<int64_t>(absl::ToInt64Milliseconds(timeout_), 1'000'000)));
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const v1::QuerySqlResponse response,
                             client->QuerySql(request));
    OPTFARM_RETURN_IF_ERROR(CheckShape(response));
    *context.out << MakeTable(response).ToFormat(context.format);
    if (response.truncated()) {
      *context.err << "There are more rows than the " << response.rows_size()
                   << " shown.\n";
    }
    return ExitCode::kOk;
  }

 private:
  std::string sql_;
  int64_t limit_ = 1000;
  absl::Duration timeout_ = absl::Seconds(5);
};

}  // namespace

CommandInfo SqlCommand() {
  return {"sql", "Query the results store with read-only SQL.",
          "  optctl sql \"SELECT device, AVG(median_us) FROM results GROUP BY "
          "device\"\n"
          "docs/results.md lists the tables. Times are microseconds since "
          "1970.",
          [] { return std::unique_ptr<Command>(new Sql); }};
}

}  // namespace optfarm::client_cli
