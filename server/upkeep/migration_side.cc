#include "server/upkeep/migration_side.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "server/upkeep/database_engine.h"
#include "storage/audit_store.h"
#include "storage/postgres/catalog.h"
#include "storage/postgres/connection.h"
#include "storage/postgres/database.h"
#include "storage/postgres/stores.h"
#include "storage/sqlite/backup.h"
#include "storage/sqlite/catalog.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/migrations.h"
#include "storage/token_store.h"
#include "storage/tune_store.h"
#include "storage/webhook_store.h"

namespace optfarm::server {
namespace {

constexpr absl::string_view kSqlite = "sqlite:";
constexpr uint64_t kMaxUptimeBytes = 1 << 20;
constexpr absl::Duration kLease = absl::Seconds(2);

// The file named by "sqlite:PATH", PATH being the file or a data folder.
std::string FileOf(const std::string& database, const DataDir& data_dir) {
  const std::string path(absl::StripPrefix(database, kSqlite));
  return absl::EndsWith(path, ".db") ? path : data_dir.database();
}

absl::Status MakeSmallStores(const DataDir& data_dir, absl::Time now) {
  OPTFARM_RETURN_IF_ERROR(
      storage::OpenSqliteTokenStore(data_dir.tokens(), now).status());
  OPTFARM_RETURN_IF_ERROR(
      storage::OpenSqliteWebhookStore(data_dir.webhooks(), now).status());
  OPTFARM_RETURN_IF_ERROR(
      storage::OpenSqliteAuditStore(data_dir.audit(), now).status());
  return storage::OpenSqliteTuneStore(data_dir.tunes(), now).status();
}

}  // namespace

absl::StatusOr<std::string> FolderOfSide(const std::string& database,
                                         const std::string& data_dir) {
  if (storage::IsPostgresUri(database)) return "";
  absl::string_view path = database;
  if (!absl::ConsumePrefix(&path, kSqlite) || path.empty()) {
    // Not said: it may have a password.
    return absl::InvalidArgumentError(
        "a database to migrate from or to is postgresql://USER@HOST/DATABASE, "
        "or sqlite:PATH of a server's data folder or of the database in it");
  }
  if (!absl::EndsWith(path, ".db")) return std::string(path);
  if (!data_dir.empty()) return data_dir;
  const std::string folder =
      std::filesystem::path(std::string(path)).parent_path().string();
  return folder.empty() ? "." : folder;
}

absl::StatusOr<std::unique_ptr<MigrationSide>> MigrationSide::Open(
    const std::string& database, const DataDir* data_dir, bool must_exist,
    absl::Time now) {
  std::unique_ptr<MigrationSide> side(new MigrationSide);
  side->data_dir_ = data_dir;
  if (data_dir == nullptr) {
    OPTFARM_RETURN_IF_ERROR(side->OpenPostgres(database, now));
  } else {
    OPTFARM_RETURN_IF_ERROR(side->OpenSqlite(database, must_exist, now));
  }
  for (const storage::SqlSide& opened : side->databases_) {
    OPTFARM_ASSIGN_OR_RETURN(std::vector<storage::SqlTable> tables,
                             storage::RecordTables(opened));
    side->tables_.push_back(std::move(tables));
  }
  return side;
}

absl::Status MigrationSide::OpenSqlite(const std::string& database,
                                       bool must_exist, absl::Time now) {
  const std::string file = FileOf(database, *data_dir_);
  if (must_exist) {
    if (!Exists(file)) {
      return absl::NotFoundError(
          absl::StrCat("there is no database '", file, "' to migrate from"));
    }
    // What is damaged is not carried on.
    OPTFARM_RETURN_IF_ERROR(storage::CheckSqliteFile(file).status());
  }
  std::error_code error;
  const auto whole = std::filesystem::absolute(file, error);
  name_ = absl::StrCat(kSqlite, error ? file : whole.string());
  OPTFARM_ASSIGN_OR_RETURN(auto records, storage::SqliteDatabase::Open(file));
  OPTFARM_RETURN_IF_ERROR(
      storage::MigrateSqlite(*records, storage::AllSqliteMigrations(), now));
  connections_.push_back(std::move(records));
  OPTFARM_RETURN_IF_ERROR(MakeSmallStores(*data_dir_, now));
  for (const std::string& path : {data_dir_->tokens(), data_dir_->webhooks(),
                                  data_dir_->audit(), data_dir_->tunes()}) {
    OPTFARM_ASSIGN_OR_RETURN(auto small, storage::SqliteDatabase::Open(path));
    connections_.push_back(std::move(small));
  }
  for (const auto& connection : connections_) {
    databases_.push_back({connection.get(), &storage::SqliteCatalog()});
  }
  return absl::OkStatus();
}

absl::Status MigrationSide::OpenPostgres(const std::string& uri,
                                         absl::Time now) {
  name_ = absl::StrCat("postgresql:", storage::PostgresName(uri));
  OPTFARM_RETURN_IF_ERROR(storage::PreparePostgres(uri, now));
  storage::PostgresLease::Options lease;
  lease.uri = uri;
  // Ended in the middle, it is soon called again.
  lease.length = kLease;
  lease.holder = absl::StrCat(ProcessName(), " (migration)");
  OPTFARM_ASSIGN_OR_RETURN(lease_,
                           storage::PostgresLease::Take(std::move(lease)));
  connections_.push_back(std::make_unique<storage::PostgresDatabase>(
      storage::PostgresDatabaseOptions{uri, lease_->fence(), true}));
  databases_.push_back({connections_[0].get(), &storage::PostgresCatalog()});
  return absl::OkStatus();
}

std::vector<storage::SqlTable> MigrationSide::Tables() const {
  std::vector<storage::SqlTable> all;
  for (const std::vector<storage::SqlTable>& tables : tables_) {
    all.insert(all.end(), tables.begin(), tables.end());
  }
  return all;
}

absl::StatusOr<storage::SqlSide> MigrationSide::SideOf(
    const storage::SqlTable& table) const {
  for (size_t i = 0; i < databases_.size(); ++i) {
    for (const storage::SqlTable& mine : tables_[i]) {
      if (mine.name != table.name) continue;
      if (mine.columns == table.columns) return databases_[i];
      return absl::InternalError(
          absl::StrCat("the table ", table.name, " of ", name_,
                       " has other columns than that of the other side"));
    }
  }
  return absl::InternalError(
      absl::StrCat("there is no table ", table.name, " in ", name_));
}

std::string MigrationSide::Uptime() const {
  if (lease_ != nullptr) return lease_->found_note();
  return ReadFile(data_dir_->uptime(), kMaxUptimeBytes).value_or("");
}

absl::Status MigrationSide::SetUptime(const std::string& text) {
  if (lease_ == nullptr) return WriteFileAtomically(data_dir_->uptime(), text);
  // Kept when the lease is given back.
  lease_->LeaveNote(text);
  return absl::OkStatus();
}

}  // namespace optfarm::server
