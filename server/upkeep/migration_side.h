// One side of a migration: the databases of a server, whichever engine has
// them, with nobody else at work on them.

#ifndef OPTFARM_SERVER_UPKEEP_MIGRATION_SIDE_H_
#define OPTFARM_SERVER_UPKEEP_MIGRATION_SIDE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/upkeep/data_dir.h"
#include "storage/postgres/lease.h"
#include "storage/sql/database.h"
#include "storage/sql/table_copy.h"

namespace optfarm::server {

// Whether it names a side, and if so where its small databases are: "" for
// PostgreSQL.
absl::StatusOr<std::string> FolderOfSide(const std::string& database,
                                         const std::string& data_dir);

// THREADS: one thread at a time.
class MigrationSide {
 public:
  // Brings the schema up to date. `data_dir` is that of FolderOfSide, open;
  // null with PostgreSQL. `must_exist`: SQLite is not made.
  // ERRORS: NotFound; FailedPrecondition when a server uses it.
  static absl::StatusOr<std::unique_ptr<MigrationSide>> Open(
      const std::string& database, const DataDir* data_dir, bool must_exist,
      absl::Time now);

  // For people, without a password; the same for one database each time.
  const std::string& name() const { return name_; }
  // The database of the jobs.
  const storage::SqlSide& records() const { return databases_[0]; }
  // Of all databases.
  std::vector<storage::SqlTable> Tables() const;
  // ERRORS: Internal when it has no such table, or another one of that name.
  absl::StatusOr<storage::SqlSide> SideOf(const storage::SqlTable& table) const;

  // When a server ran, so that deadlines leave out the time since; "": not
  // known.
  std::string Uptime() const;
  absl::Status SetUptime(const std::string& text);

 private:
  MigrationSide() = default;

  absl::Status OpenSqlite(const std::string& database, bool must_exist,
                          absl::Time now);
  absl::Status OpenPostgres(const std::string& uri, absl::Time now);

  std::string name_;
  const DataDir* data_dir_ = nullptr;
  std::unique_ptr<storage::PostgresLease> lease_;
  std::vector<std::unique_ptr<storage::SqlDatabase>> connections_;
  std::vector<storage::SqlSide> databases_;
  // Of each of them.
  std::vector<std::vector<storage::SqlTable>> tables_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_MIGRATION_SIDE_H_
