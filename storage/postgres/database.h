// PostgreSQL behind SqlDatabase. Nothing is set for longer than a transaction,
// so that a pooler may give each transaction another connection; plans are kept
// only where the connection finds that there is none.

#ifndef OPTFARM_STORAGE_POSTGRES_DATABASE_H_
#define OPTFARM_STORAGE_POSTGRES_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "storage/postgres/connection.h"
#include "storage/postgres/fence.h"
#include "storage/sql/database.h"

namespace optfarm::storage {

class PostgresCursor;

struct PostgresDatabaseOptions {
  // As PostgresConnection takes it.
  std::string uri;
  // Writing transactions begin with the lock of the leader's row, which puts
  // them in one order, and go no further when it has another epoch. Null: they
  // only write what needs no order. OWNERSHIP: shared.
  std::shared_ptr<PostgresFence> fence;
  // False: what was written last may be lost when the database's machine fails.
  bool durable = true;
  // Longest wait for the answer to a statement.
  absl::Duration patience = absl::Seconds(75);
};

// One connection, made when it is needed and made anew when it was lost.
// THREADS: one thread at a time.
class PostgresDatabase final : public SqlDatabase {
 public:
  explicit PostgresDatabase(PostgresDatabaseOptions options);
  ~PostgresDatabase() override;
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;

  int64_t Changes() const override { return changes_; }
  bool MayRunAgain() const override { return may_run_again_; }
  bool IsInProcess() const override { return false; }

 private:
  friend class PostgresCursor;

  SqlCursor& CursorOf(const char* sql, Rows rows) override;
  absl::Status Begin(Mode mode) override;
  absl::Status Commit() override;
  void RollBack() override;

  absl::Status Connect();
  absl::Status BeginFenced();
  // Runs what a cursor asks for, after what is to run before it. REQUIRES: a
  // transaction.
  absl::StatusOr<PostgresResult> Query(PostgresRequest request);
  absl::Status QueryLater(PostgresRequest request, absl::Status unless_one_row);
  // Runs what was left for later. The results of what was asked for with it.
  absl::StatusOr<std::vector<PostgresResult>> RunPending();
  void ForgetPending();
  // Finds out what became of the transaction whose COMMIT was not answered.
  // ENSURES: on OK it was committed, and `doubt_` is empty. When it was not,
  // Unavailable, and `doubt_` is empty too unless nobody knows yet.
  absl::Status Resolve(absl::Duration patience);

  const PostgresDatabaseOptions options_;
  std::unique_ptr<PostgresConnection> connection_;
  // Not tried before this, and why it failed.
  absl::Time next_connect_ = absl::InfinitePast();
  absl::Status connect_error_;
  Mode mode_ = Mode::kRead;
  // To be sent with what is asked next.
  std::vector<PostgresRequest> pending_;
  // Of each: what it means when it does not change one row; OK: nothing.
  std::vector<absl::Status> unless_one_row_;
  size_t pending_bytes_ = 0;
  int64_t changes_ = 0;
  bool may_run_again_ = false;
  // Of a fenced transaction: its number in the database.
  std::string transaction_;
  // The number of one that was perhaps committed; empty: none.
  std::string doubt_;
  absl::flat_hash_map<const char*, std::unique_ptr<PostgresCursor>> cursors_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_DATABASE_H_
