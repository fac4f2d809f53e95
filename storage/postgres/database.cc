#include "storage/postgres/database.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "storage/postgres/dialect.h"

namespace optfarm::storage {
namespace {

// The server gives up after the times that transactions set; this is for one
// that says nothing at all.
constexpr absl::Duration kShortPatience = absl::Seconds(15);
constexpr absl::Duration kConnectAgain = absl::Milliseconds(500);
// How long a COMMIT without an answer is asked about.
constexpr absl::Duration kDoubt = absl::Seconds(20);

constexpr char kBeginRead[] =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    "SET LOCAL statement_timeout = 60000;"
    "SET LOCAL idle_in_transaction_session_timeout = 120000";
// A server that stops in the middle keeps its locks no longer than that.
#define OPTFARM_BEGIN_WRITE                          \
  "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;" \
  "SET LOCAL statement_timeout = 30000;"             \
  "SET LOCAL lock_timeout = 10000;"                  \
  "SET LOCAL idle_in_transaction_session_timeout = 5000"
constexpr char kBeginWrite[] = OPTFARM_BEGIN_WRITE;
constexpr char kBeginQuickWrite[] =
    OPTFARM_BEGIN_WRITE ";SET LOCAL synchronous_commit = off";
// The lock is held until the transaction has ended for all to see: what the
// next writer numbers is larger, and committed later. After waiting for it one
// sees the row as it is then.
constexpr char kBeginFenced[] = OPTFARM_BEGIN_WRITE
    ";SELECT epoch, CAST(pg_current_xact_id() AS TEXT) FROM leader FOR UPDATE";
#undef OPTFARM_BEGIN_WRITE

constexpr char kOutcome[] = "SELECT pg_xact_status(CAST($1 AS xid8))";

// First few, then more rows at once.
constexpr int kFirstRows = 64;
constexpr int kMostRows = 2048;

// What is kept for later takes no more memory than that.
constexpr size_t kMaxPending = 4096;
constexpr size_t kMaxPendingBytes = size_t{8} << 20;

size_t BytesOf(const PostgresRequest& request) {
  size_t bytes = request.sql.size();
  for (const PostgresParameter& parameter : request.parameters) {
    bytes += parameter.bytes.size();
  }
  return bytes;
}

}  // namespace

// What may have many rows is asked for its first ones; only who wants more of
// them opens a cursor.
class PostgresCursor final : public SqlCursor {
 public:
  PostgresCursor(PostgresDatabase& db, const char* sql, SqlDatabase::Rows rows,
                 size_t number)
      : db_(db),
        many_(rows == SqlDatabase::Rows::kMany),
        name_(absl::StrCat("optfarm_", number)),
        text_(ToPostgres(sql)),
        first_(many_ ? absl::StrCat(text_.sql, " LIMIT ", kFirstRows)
                     : text_.sql),
        parameters_(text_.parameters.size()) {}

  void BindInt(int parameter, int64_t value) override {
    Bind(parameter, PostgresParameter::Int(value));
  }
  void BindDouble(int parameter, double value) override {
    Bind(parameter, PostgresParameter::Double(value));
  }
  void BindText(int parameter, absl::string_view value) override {
    Bind(parameter, PostgresParameter::Text(value));
  }
  void BindBlob(int parameter, absl::string_view value) override {
    Bind(parameter, PostgresParameter::Blob(value));
  }
  void BindNull(int parameter) override {
    Bind(parameter, PostgresParameter());
  }

  void BindInts(int parameter, absl::Span<const int64_t> values) override {
    Bind(parameter, PostgresParameter::Ints(values));
  }

  absl::Status RunLater(absl::Status unless_one_row) override {
    begun_ = ended_ = true;
    return db_.QueryLater({text_.sql, std::move(parameters_), true},
                          std::move(unless_one_row));
  }

  bool Step() override {
    if (!status_.ok() || ended_) return false;
    if (!begun_) {
      begun_ = true;
      if (!Ask({first_, parameters_, true})) return false;
      db_.changes_ = result_.Changes();
    }
    if (++row_ < result_.rows()) return true;
    ended_ = !many_ || result_.rows() < asked_ || !FetchMore() ||
             result_.rows() == 0;
    row_ = 0;
    return !ended_;
  }
  const absl::Status& status() const override { return status_; }

  int64_t Int(int column) const override { return result_.Int(row_, column); }
  double Double(int column) const override {
    return result_.Double(row_, column);
  }
  std::string Text(int column) const override {
    return result_.Text(row_, column);
  }
  bool IsNull(int column) const override {
    return result_.IsNull(row_, column);
  }

  void Release() override {
    if (open_ && db_.connection_ != nullptr &&
        db_.connection_->in_transaction()) {
      // An error ends the transaction, and its next statement tells it.
      (void)db_.Query({absl::StrCat("CLOSE ", name_), {}});
    }
    parameters_.assign(text_.parameters.size(), PostgresParameter());
    result_ = PostgresResult();
    status_ = absl::OkStatus();
    begun_ = ended_ = open_ = false;
    row_ = -1;
    asked_ = kFirstRows;
  }

 private:
  void Bind(int parameter, PostgresParameter value) {
    const auto place =
        std::find(text_.parameters.begin(), text_.parameters.end(), parameter);
    // What a statement does not ask for may be bound to it.
    if (place == text_.parameters.end()) return;
    parameters_[static_cast<size_t>(place - text_.parameters.begin())] =
        std::move(value);
  }

  // Sets the result, or the status.
  bool Ask(PostgresRequest request) {
    absl::StatusOr<PostgresResult> result = db_.Query(std::move(request));
    if (!result.ok()) {
      status_ = result.status();
      return false;
    }
    result_ = *std::move(result);
    return true;
  }

  bool FetchMore() {
    if (!open_) {
      open_ =
          Ask({absl::StrCat("DECLARE ", name_, " NO SCROLL CURSOR FOR ",
                            text_.sql),
               parameters_}) &&
          Ask({absl::StrCat("MOVE FORWARD ", kFirstRows, " FROM ", name_), {}});
      if (!open_) return false;
    }
    asked_ = std::min(asked_ * 2, kMostRows);
    return Ask({absl::StrCat("FETCH FORWARD ", asked_, " FROM ", name_), {}});
  }

  PostgresDatabase& db_;
  const bool many_;
  const std::string name_;
  const PostgresText text_;
  const std::string first_;
  std::vector<PostgresParameter> parameters_;
  PostgresResult result_;
  absl::Status status_;
  bool begun_ = false;
  bool ended_ = false;
  // There is a cursor.
  bool open_ = false;
  int row_ = -1;
  // How many rows were asked for last.
  int asked_ = kFirstRows;
};

PostgresDatabase::PostgresDatabase(PostgresDatabaseOptions options)
    : options_(std::move(options)) {}

PostgresDatabase::~PostgresDatabase() = default;

SqlCursor& PostgresDatabase::CursorOf(const char* sql, Rows rows) {
  std::unique_ptr<PostgresCursor>& cursor = cursors_[sql];
  if (cursor == nullptr) {
    cursor =
        std::make_unique<PostgresCursor>(*this, sql, rows, cursors_.size());
  }
  return *cursor;
}

absl::StatusOr<PostgresResult> PostgresDatabase::Query(
    PostgresRequest request) {
  pending_.push_back(std::move(request));
  unless_one_row_.emplace_back();
  OPTFARM_ASSIGN_OR_RETURN(std::vector<PostgresResult> results, RunPending());
  return std::move(results.back());
}

absl::Status PostgresDatabase::QueryLater(PostgresRequest request,
                                          absl::Status unless_one_row) {
  pending_bytes_ += BytesOf(request);
  pending_.push_back(std::move(request));
  unless_one_row_.push_back(std::move(unless_one_row));
  if (pending_.size() < kMaxPending && pending_bytes_ < kMaxPendingBytes) {
    return absl::OkStatus();
  }
  return RunPending().status();
}

absl::StatusOr<std::vector<PostgresResult>> PostgresDatabase::RunPending() {
  const std::vector<PostgresRequest> requests = std::move(pending_);
  const std::vector<absl::Status> otherwise = std::move(unless_one_row_);
  ForgetPending();
  absl::StatusOr<std::vector<PostgresResult>> results =
      connection_->QueryAll(requests, options_.patience);
  if (!results.ok()) {
    may_run_again_ |= connection_->lost() || connection_->may_pass();
    return results;
  }
  for (size_t i = 0; i < otherwise.size(); ++i) {
    if (!otherwise[i].ok() && (*results)[i].Changes() != 1) return otherwise[i];
  }
  return results;
}

void PostgresDatabase::ForgetPending() {
  pending_.clear();
  unless_one_row_.clear();
  pending_bytes_ = 0;
}

absl::Status PostgresDatabase::Connect() {
  if (connection_ != nullptr && !connection_->lost()) return absl::OkStatus();
  connection_.reset();
  // Those who wait for this connection are not to wait one after another.
  if (absl::Now() < next_connect_) return connect_error_;
  absl::StatusOr<std::unique_ptr<PostgresConnection>> made =
      PostgresConnection::Connect(options_.uri);
  if (!made.ok()) {
    connect_error_ = made.status();
    next_connect_ = absl::Now() + kConnectAgain;
    return connect_error_;
  }
  connection_ = *std::move(made);
  return absl::OkStatus();
}

absl::Status PostgresDatabase::Begin(Mode mode) {
  may_run_again_ = false;
  mode_ = mode;
  ForgetPending();
  const bool fresh = connection_ == nullptr || connection_->lost();
  OPTFARM_RETURN_IF_ERROR(Connect());
  absl::Status status;
  if (mode == Mode::kWrite && options_.fence != nullptr) {
    status = BeginFenced();
  } else {
    status = connection_
                 ->Run(mode == Mode::kRead ? kBeginRead
                       : options_.durable  ? kBeginWrite
                                           : kBeginQuickWrite,
                       std::min(kShortPatience, options_.patience))
                 .status();
  }
  if (!status.ok()) {
    // Of a connection that ended while nobody used it.
    may_run_again_ = !fresh && (connection_ == nullptr || connection_->lost());
    RollBack();
  }
  return status;
}

absl::Status PostgresDatabase::BeginFenced() {
  PostgresFence& fence = *options_.fence;
  if (fence.is_lost()) {
    return fence.Lose("it has lost the lease of the database; restart it");
  }
  if (!doubt_.empty()) {
    const absl::Status outcome = Resolve(absl::ZeroDuration());
    if (outcome.ok()) {
      return fence.Lose(
          "what it believed not to be written was written; restart it");
    }
    if (!doubt_.empty()) return outcome;
  }
  OPTFARM_ASSIGN_OR_RETURN(const PostgresResult leader,
                           connection_->Run(kBeginFenced, kShortPatience));
  int64_t epoch = 0;
  if (leader.rows() != 1 || !absl::SimpleAtoi(leader.Text(0, 0), &epoch) ||
      epoch != fence.epoch()) {
    return fence.Lose("another server has taken over; stop this one");
  }
  transaction_ = leader.Text(0, 1);
  return absl::OkStatus();
}

absl::Status PostgresDatabase::Commit() {
  if (!pending_.empty()) OPTFARM_RETURN_IF_ERROR(RunPending().status());
  const absl::StatusOr<PostgresResult> result =
      connection_->Run("COMMIT", options_.patience);
  if (result.ok()) {
    if (result->Tag() == "COMMIT") return absl::OkStatus();
    return absl::InternalError(
        "the database rolled back a transaction of which a statement failed");
  }
  if (!connection_->lost()) {
    may_run_again_ = connection_->may_pass();
    return result.status();
  }
  // Nothing is lost with a question; it is asked again.
  if (mode_ == Mode::kRead) may_run_again_ = true;
  if (mode_ == Mode::kRead || options_.fence == nullptr) {
    return result.status();
  }
  doubt_ = transaction_;
  return Resolve(kDoubt);
}

absl::Status PostgresDatabase::Resolve(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  absl::Status status;
  while (true) {
    status = Connect();
    if (status.ok()) {
      const absl::StatusOr<PostgresResult> outcome = connection_->Query(
          kOutcome, {PostgresParameter::Text(doubt_)}, kShortPatience);
      status = outcome.status();
      const std::string word = outcome.ok() && outcome->rows() == 1
                                   ? outcome->Text(0, 0)
                                   : "unknown";
      if (word == "committed") {
        doubt_.clear();
        return absl::OkStatus();
      }
      // A database that has never heard of it does not have it either.
      if (word == "aborted" || absl::IsInvalidArgument(status)) {
        doubt_.clear();
        may_run_again_ = true;
        return absl::UnavailableError(
            "the connection was lost before the write was made");
      }
    }
    if (absl::Now() >= deadline) break;
    absl::SleepFor(absl::Milliseconds(100));
  }
  return absl::UnavailableError(
      absl::StrCat("the connection was lost during a write, and whether it was "
                   "made is not known yet: ",
                   status.message()));
}

void PostgresDatabase::RollBack() {
  ForgetPending();
  if (connection_ == nullptr || connection_->lost()) return;
  // What cannot be rolled back is not used again: it ends with its connection.
  if (!connection_->Run("ROLLBACK", kShortPatience).ok()) connection_.reset();
}

}  // namespace optfarm::storage
