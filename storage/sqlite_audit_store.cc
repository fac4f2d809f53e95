#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "storage/audit_store.h"
#include "storage/select_columns.h"
#include "storage/sqlite_database.h"
#include "storage/sqlite_migrations.h"

namespace optfarm::storage {
namespace {

// Times are microseconds since 1970 (UTC).
constexpr char kAudit[] = R"sql(
CREATE TABLE audit (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  actor TEXT NOT NULL,
  token_id TEXT NOT NULL,
  project TEXT NOT NULL,
  peer TEXT NOT NULL,
  method TEXT NOT NULL,
  subject TEXT NOT NULL,
  outcome TEXT NOT NULL,
  message TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit(time);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log is not changed'); END;
CREATE TRIGGER audit_keeps_what_is_young BEFORE DELETE ON audit
  WHEN OLD.time > (strftime('%s', 'now') - 86400) * 1000000
  BEGIN SELECT RAISE(ABORT, 'the audit log keeps what is young'); END;
)sql";

constexpr SqliteMigration kMigrations[] = {{"audit log", kAudit}};

constexpr absl::Duration kYoung = absl::Hours(25);

constexpr int64_t kRowsAStep = 1000;
constexpr char kOldest[] =
    "DELETE FROM audit WHERE number IN (SELECT number FROM audit"
    "  INDEXED BY audit_by_time WHERE time < ?1 ORDER BY time LIMIT ?2)";

constexpr char kCalls[] =
    "SELECT number, time, actor, token_id, project, peer, method, subject,"
    " outcome, message FROM audit WHERE (?1 = 0 OR number < ?1)"
    " AND (?2 IS NULL OR actor = ?2) AND (?3 IS NULL OR project = ?3)"
    " AND (?4 IS NULL OR method = ?4) AND (?5 IS NULL OR time >= ?5)"
    " AND (?6 IS NULL OR time < ?6) ORDER BY number DESC LIMIT ?7";

AuditRecord ReadCall(const SqliteStatement& row) {
  constexpr SelectColumns kCall(kCalls);
  AuditRecord record;
  record.number = row.Int(kCall["number"]);
  record.time = row.Time(kCall["time"]);
  record.actor = row.Text(kCall["actor"]);
  record.token_id = row.Text(kCall["token_id"]);
  record.project = row.Text(kCall["project"]);
  record.peer = row.Text(kCall["peer"]);
  record.method = row.Text(kCall["method"]);
  record.subject = row.Text(kCall["subject"]);
  record.outcome = row.Text(kCall["outcome"]);
  record.message = row.Text(kCall["message"]);
  return record;
}

class SqliteAuditStore final : public AuditStore {
 public:
  explicit SqliteAuditStore(std::unique_ptr<SqliteDatabase> db)
      : db_(std::move(db)) {}

  absl::Status Append(const AuditRecord& record) override {
    absl::MutexLock lock(&mutex_);
    SqliteStatement insert = db_->Prepare(
        "INSERT INTO audit (time, actor, token_id, project, peer, method,"
        " subject, outcome, message) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)");
    insert.BindTime(1, record.time);
    insert.BindText(2, record.actor);
    insert.BindText(3, record.token_id);
    insert.BindText(4, record.project);
    insert.BindText(5, record.peer);
    insert.BindText(6, record.method);
    insert.BindText(7, record.subject);
    insert.BindText(8, record.outcome);
    insert.BindText(9, record.message);
    return insert.Run();
  }

  absl::StatusOr<std::vector<AuditRecord>> List(
      const AuditFilter& filter, const PageRequest& page) override {
    absl::MutexLock lock(&mutex_);
    SqliteStatement query = db_->Prepare(kCalls);
    query.BindInt(1, page.before);
    if (filter.actor) query.BindText(2, *filter.actor);
    if (filter.project) query.BindText(3, *filter.project);
    if (filter.method) query.BindText(4, *filter.method);
    query.BindTime(5, filter.from_time);
    if (filter.until_time != absl::InfiniteFuture()) {
      query.BindTime(6, filter.until_time);
    }
    query.BindInt(7, page.limit);
    std::vector<AuditRecord> records;
    while (query.Step()) records.push_back(ReadCall(query));
    OPTFARM_RETURN_IF_ERROR(query.status());
    return records;
  }

  absl::Status Forget(absl::Time before) override {
    const absl::Time bound = std::min(before, absl::Now() - kYoung);
    int64_t removed = kRowsAStep;
    // In steps, so that calls that are written down wait for one of them.
    while (removed == kRowsAStep) {
      absl::MutexLock lock(&mutex_);
      SqliteStatement remove = db_->Prepare(kOldest);
      remove.BindTime(1, bound);
      remove.BindInt(2, kRowsAStep);
      OPTFARM_RETURN_IF_ERROR(remove.Run());
      removed = db_->Changes();
    }
    return absl::OkStatus();
  }

 private:
  absl::Mutex mutex_;
  const std::unique_ptr<SqliteDatabase> db_ ABSL_PT_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<AuditStore>> Open(const std::string& path,
                                                 absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> db,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(MigrateSqlite(*db, kMigrations, now));
  // A flush for every line would make each call wait for the disk.
  OPTFARM_RETURN_IF_ERROR(db->Run("PRAGMA synchronous = NORMAL"));
  return std::make_unique<SqliteAuditStore>(std::move(db));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditStore>> OpenSqliteAuditStore(
    const std::string& path, absl::Time now) {
  absl::StatusOr<std::unique_ptr<AuditStore>> store = Open(path, now);
  if (!store.ok()) {
    return Annotate(store.status(),
                    absl::StrCat("opening the audit log '", path, "'"));
  }
  return store;
}

}  // namespace optfarm::storage
