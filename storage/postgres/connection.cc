#include "storage/postgres/connection.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace optfarm::storage {
namespace {

// OIDs of PostgreSQL's own types, which never change.
constexpr Oid kBool = 16;
constexpr Oid kBytes = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kInt2 = 21;
constexpr Oid kInt4 = 23;
constexpr Oid kText = 25;
constexpr Oid kFloat8 = 701;
constexpr Oid kInt8Array = 1016;
constexpr std::array kReadable = {kBool, kBytes, kInt8,  kInt2,
                                  kInt4, kText,  kFloat8};

constexpr int kBinary = 1;
constexpr absl::Duration kConnectPatience = absl::Seconds(15);

// A statement that was prepared was not there: a pooler that looks like the
// server gives each transaction another session. Nothing is prepared any more.
std::atomic<bool> plans_went_astray{false};

// The network's order.
std::string BigEndian(uint64_t bits, size_t size = 8) {
  std::string bytes(size, '\0');
  for (size_t i = size; i-- > 0; bits >>= 8) {
    bytes[i] = static_cast<char>(bits & 0xff);
  }
  return bytes;
}

uint64_t FromBigEndian(const char* data, int size) {
  uint64_t bits = 0;
  for (int i = 0; i < size; ++i) {
    bits = bits << 8 | static_cast<unsigned char>(data[i]);
  }
  return bits;
}

std::string Trimmed(const char* message) {
  return std::string(
      absl::StripAsciiWhitespace(message == nullptr ? "" : message));
}

absl::StatusCode CodeOf(absl::string_view state) {
  if (state == "53100") return absl::StatusCode::kResourceExhausted;
  if (state == "42501") return absl::StatusCode::kPermissionDenied;
  if (state == "XX001" || state == "XX002") return absl::StatusCode::kDataLoss;
  const absl::string_view kind = state.substr(0, 2);
  if (kind == "23") return absl::StatusCode::kAlreadyExists;
  if (kind == "22" || kind == "54") return absl::StatusCode::kInvalidArgument;
  // Timeouts of a lock and of a statement, a standby, and whatever the server
  // or the way to it cannot do now.
  if (state == "55P03" || state == "25006" || kind == "40" || kind == "53" ||
      kind == "57" || kind == "58" || kind == "08") {
    return absl::StatusCode::kUnavailable;
  }
  return absl::StatusCode::kInternal;
}

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

// Null when it is no connection string; then `error` says why.
Options Parse(const std::string& uri, std::string& error) {
  char* message = nullptr;
  Options options(PQconninfoParse(uri.c_str(), &message));
  if (options == nullptr) error = Trimmed(message);
  PQfreemem(message);
  return options;
}

void KeepSilent(void*, const PGresult*) {}

}  // namespace

PostgresParameter PostgresParameter::Int(int64_t value) {
  return {kInt8, false, BigEndian(static_cast<uint64_t>(value))};
}

PostgresParameter PostgresParameter::Double(double value) {
  uint64_t bits = 0;
  static_assert(sizeof(bits) == sizeof(value));
  std::memcpy(&bits, &value, sizeof(bits));
  return {kFloat8, false, BigEndian(bits)};
}

PostgresParameter PostgresParameter::Text(absl::string_view value) {
  return {kText, false, ReplaceInvalidUtf8(value)};
}

PostgresParameter PostgresParameter::Blob(absl::string_view value) {
  return {kBytes, false, std::string(value)};
}

PostgresParameter PostgresParameter::Ints(absl::Span<const int64_t> values) {
  // Dimensions, whether there are NULLs, the elements' type.
  std::string bytes = absl::StrCat(BigEndian(values.empty() ? 0 : 1, 4),
                                   BigEndian(0, 4), BigEndian(kInt8, 4));
  if (!values.empty()) {
    absl::StrAppend(&bytes, BigEndian(values.size(), 4), BigEndian(1, 4));
  }
  for (const int64_t value : values) {
    absl::StrAppend(&bytes, BigEndian(8, 4),
                    BigEndian(static_cast<uint64_t>(value)));
  }
  return {kInt8Array, false, std::move(bytes)};
}

void PostgresResult::Clear::operator()(pg_result* result) const {
  PQclear(result);
}

int PostgresResult::rows() const { return PQntuples(result_.get()); }

bool PostgresResult::IsNull(int row, int column) const {
  return PQgetisnull(result_.get(), row, column) != 0;
}

int64_t PostgresResult::Int(int row, int column) const {
  if (IsNull(row, column)) return 0;
  const char* data = PQgetvalue(result_.get(), row, column);
  switch (PQftype(result_.get(), column)) {
    case kInt8:
      return static_cast<int64_t>(FromBigEndian(data, 8));
    case kInt4:
      return static_cast<int32_t>(FromBigEndian(data, 4));
    case kInt2:
      return static_cast<int16_t>(FromBigEndian(data, 2));
    case kBool:
      return data[0] != 0 ? 1 : 0;
    case kFloat8:
      return static_cast<int64_t>(Double(row, column));
    default:
      return 0;
  }
}

double PostgresResult::Double(int row, int column) const {
  if (IsNull(row, column)) return 0;
  if (PQftype(result_.get(), column) != kFloat8) {
    return static_cast<double>(Int(row, column));
  }
  const uint64_t bits =
      FromBigEndian(PQgetvalue(result_.get(), row, column), 8);
  double value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

std::string PostgresResult::Text(int row, int column) const {
  return std::string(
      PQgetvalue(result_.get(), row, column),
      static_cast<size_t>(PQgetlength(result_.get(), row, column)));
}

int64_t PostgresResult::Changes() const {
  return std::strtoll(PQcmdTuples(result_.get()), nullptr, 10);
}

std::string PostgresResult::Tag() const { return PQcmdStatus(result_.get()); }

int PostgresResult::UnreadableColumn() const {
  for (int column = 0; column < PQnfields(result_.get()); ++column) {
    if (std::find(kReadable.begin(), kReadable.end(),
                  PQftype(result_.get(), column)) == kReadable.end()) {
      return column;
    }
  }
  return -1;
}

std::string PostgresName(const std::string& uri) {
  std::string error;
  const Options options = Parse(uri, error);
  std::string host = "local";
  std::string database = "postgres";
  for (const PQconninfoOption* option = options.get();
       option != nullptr && option->keyword != nullptr; ++option) {
    if (option->val == nullptr || option->val[0] == '\0') continue;
    const absl::string_view keyword = option->keyword;
    if (keyword == "host") host = option->val;
    if (keyword == "dbname") database = option->val;
  }
  return options == nullptr ? "" : absl::StrCat(host, "/", database);
}

PostgresConnection::PostgresConnection(pg_conn* connection, std::string name)
    : connection_(connection), name_(std::move(name)) {}

PostgresConnection::~PostgresConnection() { PQfinish(connection_); }

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::Connect(
    const std::string& uri) {
  std::string error;
  if (Parse(uri, error) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the address of the database is none that libpq knows (",
                     error, "); give postgresql://USER@HOST/DATABASE"));
  }
  // What comes first gives way to what the URI says.
  constexpr std::array kKeys = {"connect_timeout",
                                "application_name",
                                "keepalives_idle",
                                "tcp_user_timeout",
                                "dbname",
                                "client_encoding",
                                static_cast<const char*>(nullptr)};
  const std::array values = {"5",
                             "optfarm-server",
                             "10",
                             "15000",
                             uri.c_str(),
                             "UTF8",
                             static_cast<const char*>(nullptr)};
  std::unique_ptr<PostgresConnection> connection(new PostgresConnection(
      PQconnectdbParams(kKeys.data(), values.data(), /*expand_dbname=*/1),
      PostgresName(uri)));
  PGconn* const raw = connection->connection_;
  if (PQstatus(raw) != CONNECTION_OK) {
    return absl::UnavailableError(
        absl::StrCat("connecting to database '", connection->name_,
                     "': ", Trimmed(PQerrorMessage(raw)),
                     "; see that PostgreSQL runs and lets this server in"));
  }
  PQsetNoticeReceiver(raw, KeepSilent, nullptr);
  if (PQsetnonblocking(raw, 1) != 0) {
    return connection->Lost(Trimmed(PQerrorMessage(raw)));
  }
  OPTFARM_RETURN_IF_ERROR(connection->FindOutWhoAnswers());
  return connection;
}

absl::Status PostgresConnection::FindOutWhoAnswers() {
  OPTFARM_ASSIGN_OR_RETURN(const PostgresResult who,
                           Query("SELECT pg_backend_pid(), pg_is_in_recovery()",
                                 {}, kConnectPatience));
  keeps_plans_ = who.rows() == 1 && who.Int(0, 0) == PQbackendPID(connection_);
  if (who.rows() != 1 || who.Int(0, 1) == 0) return absl::OkStatus();
  // What it knows may be old: a token that was revoked, a lease that ended.
  return absl::UnavailableError(absl::StrCat(
      "connecting to database '", name_,
      "': it is a replica; name the primary, or several hosts with "
      "target_session_attrs=read-write"));
}

absl::Status PostgresConnection::Lost(absl::string_view why) {
  lost_ = true;
  return absl::UnavailableError(absl::StrCat(
      "using database '", name_, "': the connection is lost (", why, ")"));
}

bool PostgresConnection::in_transaction() const {
  return !lost_ && PQtransactionStatus(connection_) == PQTRANS_INTRANS;
}

bool PostgresConnection::WaitForAnswer(absl::Time deadline) {
  while (true) {
    const int unsent = PQflush(connection_);
    if (unsent < 0) return false;
    if (unsent == 0 && PQisBusy(connection_) == 0) return true;
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    pollfd poll_fd = {};
    poll_fd.fd = PQsocket(connection_);
    poll_fd.events = static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN);
    const int64_t milliseconds =
        std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, 60'000);
    if (poll(&poll_fd, 1, static_cast<int>(milliseconds)) < 0 &&
        errno != EINTR) {
      return false;
    }
    if ((poll_fd.revents & (POLLIN | POLLERR | POLLHUP)) != 0 &&
        PQconsumeInput(connection_) == 0) {
      return false;
    }
  }
}

absl::Status PostgresConnection::AwaitAnswer(absl::Time deadline,
                                             absl::Duration limit) {
  if (WaitForAnswer(deadline)) return absl::OkStatus();
  return Lost(
      absl::Now() >= deadline
          ? absl::StrCat("no answer within ", absl::FormatDuration(limit))
          : Trimmed(PQerrorMessage(connection_)));
}

absl::Status PostgresConnection::ErrorOf(const pg_result* result) {
  const char* const state_text = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  if (state_text == nullptr || PQstatus(connection_) != CONNECTION_OK) {
    return Lost(Trimmed(PQresultErrorMessage(result)));
  }
  const absl::string_view state = state_text;
  may_pass_ = state == "40001" || state == "40P01";
  // A plan that is not there, is there already, or is of an older schema.
  if (state == "26000" || state == "42P05" || state == "0A000") {
    if (state != "0A000") plans_went_astray = true;
    lost_ = true;
  }
  // An end of the session, and a standby that was the primary.
  if (absl::StartsWith(state, "57P") || state == "25006" || state == "25P03") {
    lost_ = true;
  }
  const absl::StatusCode code = CodeOf(state);
  return absl::Status(
      code,
      absl::StrCat("using database '", name_, "': ",
                   Trimmed(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)),
                   code == absl::StatusCode::kResourceExhausted
                       ? "; free space on the database's disk and try again"
                   : code == absl::StatusCode::kDataLoss
                       ? "; restore the database from a backup"
                       : ""));
}

absl::StatusOr<PostgresResult> PostgresConnection::Answer(
    bool sent, absl::Duration limit) {
  if (!sent) return Lost(Trimmed(PQerrorMessage(connection_)));
  const absl::Time deadline = absl::Now() + limit;
  PostgresResult last;
  absl::Status status;
  while (true) {
    OPTFARM_RETURN_IF_ERROR(AwaitAnswer(deadline, limit));
    PGresult* const raw = PQgetResult(connection_);
    if (raw == nullptr) break;
    PostgresResult result(raw);
    const ExecStatusType kind = PQresultStatus(raw);
    if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK) {
      status = ErrorOf(raw);
    }
    last = std::move(result);
  }
  if (!status.ok()) return status;
  return last;
}

absl::StatusOr<PostgresResult> PostgresConnection::Run(const char* sql,
                                                       absl::Duration limit) {
  may_pass_ = false;
  if (lost_) return Lost("earlier");
  return Answer(PQsendQuery(connection_, sql) == 1, limit);
}

absl::StatusOr<PostgresResult> PostgresConnection::Query(
    const std::string& sql, absl::Span<const PostgresParameter> parameters,
    absl::Duration limit) {
  const PostgresRequest request{sql, {parameters.begin(), parameters.end()}};
  OPTFARM_ASSIGN_OR_RETURN(std::vector<PostgresResult> results,
                           QueryAll({request}, limit));
  return std::move(results[0]);
}

absl::StatusOr<std::vector<PostgresResult>> PostgresConnection::QueryAll(
    absl::Span<const PostgresRequest> requests, absl::Duration limit) {
  may_pass_ = false;
  if (lost_) return Lost("earlier");
  bool going = PQenterPipelineMode(connection_) == 1;
  std::vector<Sent> sent;
  for (const PostgresRequest& request : requests) {
    going = going && Send(request, sent);
  }
  if (!going || PQpipelineSync(connection_) != 1) {
    return Lost(Trimmed(PQerrorMessage(connection_)));
  }
  absl::StatusOr<std::vector<PostgresResult>> results = ReadAll(sent, limit);
  if (!lost_ && PQexitPipelineMode(connection_) != 1) {
    return Lost(Trimmed(PQerrorMessage(connection_)));
  }
  return results;
}

std::string PostgresConnection::PlanKey(const PostgresRequest& request) {
  std::string key = request.sql;
  for (const PostgresParameter& parameter : request.parameters) {
    absl::StrAppend(&key, " ", parameter.type);
  }
  return key;
}

bool PostgresConnection::Send(const PostgresRequest& request,
                              std::vector<Sent>& sent) {
  std::vector<Oid> types;
  std::vector<const char*> values;
  std::vector<int> lengths;
  for (const PostgresParameter& parameter : request.parameters) {
    types.push_back(parameter.type);
    values.push_back(parameter.is_null ? nullptr : parameter.bytes.data());
    lengths.push_back(static_cast<int>(parameter.bytes.size()));
  }
  const int count = static_cast<int>(types.size());
  const std::vector<int> formats(types.size(), kBinary);
  if (!request.keep_plan || !keeps_plans_ || plans_went_astray) {
    sent.emplace_back();
    return PQsendQueryParams(connection_, request.sql.c_str(), count,
                             types.data(), values.data(), lengths.data(),
                             formats.data(), kBinary) == 1;
  }
  const std::string key = PlanKey(request);
  const auto [plan, is_new] = plans_.try_emplace(key);
  if (is_new) {
    plan->second = absl::StrCat("optfarm_plan_", ++plans_made_);
    sent.push_back({key});
    if (PQsendPrepare(connection_, plan->second.c_str(), request.sql.c_str(),
                      count, types.data()) != 1) {
      return false;
    }
  }
  sent.emplace_back();
  return PQsendQueryPrepared(connection_, plan->second.c_str(), count,
                             values.data(), lengths.data(), formats.data(),
                             kBinary) == 1;
}

// What comes back when all of it was asked for in one go: for each statement
// its result and an end, at last that of the whole.
absl::StatusOr<std::vector<PostgresResult>> PostgresConnection::ReadAll(
    absl::Span<const Sent> sent, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  std::vector<PostgresResult> results;
  absl::Status status;
  size_t next = 0;
  while (true) {
    OPTFARM_RETURN_IF_ERROR(AwaitAnswer(deadline, limit));
    PGresult* const raw = PQgetResult(connection_);
    if (raw == nullptr) {
      if (++next > sent.size()) return Lost("it answered too much");
      continue;
    }
    PostgresResult result(raw);
    const ExecStatusType kind = PQresultStatus(raw);
    if (kind == PGRES_PIPELINE_SYNC) break;
    if (next >= sent.size()) {
      return Lost(Trimmed(PQresultErrorMessage(raw)));
    }
    if (kind == PGRES_COMMAND_OK || kind == PGRES_TUPLES_OK) {
      if (sent[next].plan.empty()) results.push_back(std::move(result));
      continue;
    }
    // What comes after one that failed is not run.
    if (status.ok() && kind != PGRES_PIPELINE_ABORTED) status = ErrorOf(raw);
    if (!sent[next].plan.empty()) plans_.erase(sent[next].plan);
    if (lost_) return status;
  }
  OPTFARM_RETURN_IF_ERROR(status);
  for (const PostgresResult& result : results) {
    if (const int column = result.UnreadableColumn(); column >= 0) {
      return absl::InternalError(
          absl::StrCat("column ", column, " of an answer of database '", name_,
                       "' has a type that is not read"));
    }
  }
  return results;
}

}  // namespace optfarm::storage
