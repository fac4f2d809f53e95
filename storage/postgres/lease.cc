#include "storage/postgres/lease.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(15);

#define OPTFARM_NOW \
  "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
// No row: somebody has it. What comes back is one statement's work each, so
// that no transaction is left open in between.
constexpr char kTake[] =
    "UPDATE leader SET epoch = epoch + 1, holder = $1, lease_until ="
    " " OPTFARM_NOW " + $2 WHERE lease_until <= " OPTFARM_NOW
    " RETURNING epoch";
constexpr char kWho[] = "SELECT holder, lease_until FROM leader";
constexpr char kRenew[] = "UPDATE leader SET lease_until = " OPTFARM_NOW
                          " + $2 WHERE epoch = $1 RETURNING epoch";
constexpr char kGiveBack[] =
    "UPDATE leader SET lease_until = 0 WHERE epoch = $1";
#undef OPTFARM_NOW

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresLease>> PostgresLease::Take(
    Options options) {
  OPTFARM_ASSIGN_OR_RETURN(auto connection,
                           PostgresConnection::Connect(options.uri));
  const int64_t length = absl::ToInt64Microseconds(options.length);
  int64_t seen_until = 0;
  while (true) {
    OPTFARM_ASSIGN_OR_RETURN(
        const PostgresResult taken,
        connection->Query(kTake,
                          {PostgresParameter::Text(options.holder),
                           PostgresParameter::Int(length)},
                          kPatience));
    if (taken.rows() == 1) {
      return std::unique_ptr<PostgresLease>(new PostgresLease(
          std::move(options), taken.Int(0, 0), std::move(connection)));
    }
    OPTFARM_ASSIGN_OR_RETURN(const PostgresResult who,
                             connection->Query(kWho, {}, kPatience));
    if (who.rows() != 1) {
      return absl::DataLossError(
          "the table leader of the database has not its one row; restore the "
          "database from a backup");
    }
    const int64_t until = who.Int(0, 1);
    if (seen_until != 0 && until > seen_until) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the database is in use by the server ", who.Text(0, 0),
          "; one server works on a database: stop that one first"));
    }
    if (seen_until == 0) {
      LogInfo("waiting for the end of the lease that the server ",
              who.Text(0, 0), " had of the database");
    }
    seen_until = until;
    absl::SleepFor(absl::Milliseconds(200));
  }
}

PostgresLease::PostgresLease(Options options, int64_t epoch,
                             std::unique_ptr<PostgresConnection> connection)
    : options_(std::move(options)),
      fence_(std::make_shared<PostgresFence>(epoch, options_.on_lost)),
      connection_(std::move(connection)),
      thread_([this] { KeepRenewing(); }) {}

PostgresLease::~PostgresLease() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
  if (connection_ == nullptr || fence_->is_lost()) return;
  // Otherwise the next server waits for its end.
  connection_
      ->Query(kGiveBack, {PostgresParameter::Int(fence_->epoch())}, kPatience)
      .status()
      .IgnoreError();
}

void PostgresLease::KeepRenewing() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stop_),
                                  options_.length / 4)) {
        return;
      }
    }
    if (fence_->is_lost()) return;
    Renew();
  }
}

void PostgresLease::Renew() {
  if (connection_ == nullptr || connection_->lost()) {
    connection_.reset();
    absl::StatusOr<std::unique_ptr<PostgresConnection>> made =
        PostgresConnection::Connect(options_.uri);
    if (!made.ok()) {
      LogWarning("renewing the lease of the database: ",
                 made.status().message());
      return;
    }
    connection_ = *std::move(made);
  }
  const absl::StatusOr<PostgresResult> renewed = connection_->Query(
      kRenew,
      {PostgresParameter::Int(fence_->epoch()),
       PostgresParameter::Int(absl::ToInt64Microseconds(options_.length))},
      kPatience);
  if (!renewed.ok()) {
    LogWarning("renewing the lease of the database: ",
               renewed.status().message());
  } else if (renewed->rows() == 0) {
    fence_->Lose("another server has taken over").IgnoreError();
  }
}

}  // namespace optfarm::storage
