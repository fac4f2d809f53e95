#include "storage/postgres/lease.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/authenticated_encryption.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(15);
// UNITS: bytes.
constexpr size_t kSecretBytes = 32;

#define OPTFARM_NOW \
  "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
// No row: somebody has it. What comes back is one statement's work each, so
// that no transaction is left open in between.
constexpr char kTake[] =
    "UPDATE leader SET epoch = epoch + 1, holder = $1, lease_until ="
    " " OPTFARM_NOW
    " + $2, address = $3, secret = $4 WHERE lease_until <= " OPTFARM_NOW
    " RETURNING epoch, note";
constexpr char kWho[] = "SELECT holder, lease_until FROM leader";
constexpr char kRenew[] = "UPDATE leader SET lease_until = " OPTFARM_NOW
                          " + $2, note = $3 WHERE epoch = $1 RETURNING epoch";
constexpr char kGiveBack[] =
    "UPDATE leader SET lease_until = 0, note = $2 WHERE epoch = $1";
#undef OPTFARM_NOW

// Goes on while the process is stopped, and whatever becomes of the wall clock.
absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

absl::Status NoRow() {
  return absl::DataLossError(
      "the table leader of the database has not its one row; restore the "
      "database from a backup");
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresLease>> PostgresLease::TryOnce(
    Options& options, std::unique_ptr<PostgresConnection>& connection) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string secret,
                           SecretRandomBytes(kSecretBytes));
  Taken taken;
  taken.secret = absl::BytesToHexString(secret);
  OPTFARM_ASSIGN_OR_RETURN(
      const PostgresResult row,
      connection->Query(
          kTake,
          {PostgresParameter::Text(options.holder),
           PostgresParameter::Int(absl::ToInt64Microseconds(options.length)),
           PostgresParameter::Text(options.address),
           PostgresParameter::Text(taken.secret)},
          kPatience));
  if (row.rows() != 1) return nullptr;
  taken.epoch = row.Int(0, 0);
  taken.note = row.Text(0, 1);
  return std::unique_ptr<PostgresLease>(new PostgresLease(
      std::move(options), std::move(taken), std::move(connection)));
}

absl::StatusOr<std::unique_ptr<PostgresLease>> PostgresLease::TryToTake(
    Options options) {
  OPTFARM_ASSIGN_OR_RETURN(auto connection,
                           PostgresConnection::Connect(options.uri));
  return TryOnce(options, connection);
}

absl::StatusOr<std::unique_ptr<PostgresLease>> PostgresLease::Take(
    Options options) {
  OPTFARM_ASSIGN_OR_RETURN(auto connection,
                           PostgresConnection::Connect(options.uri));
  int64_t seen_until = 0;
  while (true) {
    OPTFARM_ASSIGN_OR_RETURN(auto lease, TryOnce(options, connection));
    if (lease != nullptr) return lease;
    OPTFARM_ASSIGN_OR_RETURN(const PostgresResult who,
                             connection->Query(kWho, {}, kPatience));
    if (who.rows() != 1) return NoRow();
    const int64_t until = who.Int(0, 1);
    if (seen_until != 0 && until > seen_until) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the database is in use by the server ", who.Text(0, 0),
          "; stop that one first, or give all servers --advertise"));
    }
    if (seen_until == 0) {
      LogInfo("waiting for the end of the lease that the server ",
              who.Text(0, 0), " had of the database");
    }
    seen_until = until;
    absl::SleepFor(absl::Milliseconds(200));
  }
}

PostgresLease::PostgresLease(Options options, Taken taken,
                             std::unique_ptr<PostgresConnection> connection)
    : options_(std::move(options)),
      taken_(std::move(taken)),
      fence_(std::make_shared<PostgresFence>(taken_.epoch, options_.on_lost)),
      connection_(std::move(connection)),
      note_(taken_.note),
      thread_([this] { KeepRenewing(); }) {}

PostgresLease::~PostgresLease() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
  if (connection_ == nullptr || fence_->is_lost()) return;
  absl::MutexLock lock(&mutex_);
  // Otherwise the next server waits for its end.
  connection_
      ->Query(kGiveBack,
              {PostgresParameter::Int(taken_.epoch),
               PostgresParameter::Text(note_)},
              kPatience)
      .status()
      .IgnoreError();
}

void PostgresLease::LeaveNote(std::string note) {
  absl::MutexLock lock(&mutex_);
  note_ = std::move(note);
}

void PostgresLease::KeepRenewing() {
  absl::Duration renewed = SteadyNow();
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stop_),
                                  options_.length / 4)) {
        return;
      }
    }
    if (fence_->is_lost()) return;
    const absl::Duration begin = SteadyNow();
    const absl::Status status = Renew();
    if (status.ok()) {
      renewed = begin;
      continue;
    }
    LogWarning("renewing the lease of the database: ", status.message());
    if (options_.ends_by_itself && SteadyNow() - renewed >= options_.length) {
      fence_
          ->Lose(absl::StrCat("it could not renew its lease of the database (",
                              status.message(), ")"))
          .IgnoreError();
    }
  }
}

absl::Status PostgresLease::Renew() {
  if (connection_ == nullptr || connection_->lost()) {
    connection_.reset();
    OPTFARM_ASSIGN_OR_RETURN(connection_,
                             PostgresConnection::Connect(options_.uri));
  }
  std::string note;
  {
    absl::MutexLock lock(&mutex_);
    note = note_;
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const PostgresResult renewed,
      connection_->Query(
          kRenew,
          {PostgresParameter::Int(taken_.epoch),
           PostgresParameter::Int(absl::ToInt64Microseconds(options_.length)),
           PostgresParameter::Text(note)},
          std::min(kPatience, options_.length / 2)));
  if (renewed.rows() == 0) {
    fence_->Lose("another server has taken over").IgnoreError();
  }
  return absl::OkStatus();
}

}  // namespace optfarm::storage
