#include "storage/audit_store.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "storage/sql/run.h"
#include "storage/sql/select_columns.h"
#include "storage/sql/stores.h"

namespace optfarm::storage {
namespace {

constexpr absl::Duration kYoung = absl::Hours(25);

constexpr int64_t kRowsAStep = 1000;
constexpr char kOldest[] =
    "DELETE FROM audit WHERE number IN (SELECT number FROM audit"
    "  INDEXED BY audit_by_time WHERE time < ?1 ORDER BY time LIMIT ?2)";

constexpr char kCalls[] =
    "SELECT number, time, actor, token_id, project, peer, method, subject,"
    " outcome, message FROM audit WHERE (?1 = 0 OR number < ?1)"
    " AND (actor = ?2 OR ?2 IS NULL) AND (project = ?3 OR ?3 IS NULL)"
    " AND (method = ?4 OR ?4 IS NULL) AND (time >= ?5 OR ?5 IS NULL)"
    " AND (time < ?6 OR ?6 IS NULL) ORDER BY number DESC LIMIT ?7";

AuditRecord ReadCall(const SqlStatement& row) {
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

class SqlAuditStore final : public AuditStore {
 public:
  explicit SqlAuditStore(std::unique_ptr<SqlDatabase> db)
      : db_(std::move(db)) {}

  absl::Status Append(const AuditRecord& record) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement insert = db.Prepare(
              "INSERT INTO audit (time, actor, token_id, project, peer, method,"
              " subject, outcome, message) VALUES "
              "(?1,?2,?3,?4,?5,?6,?7,?8,?9)");
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
        });
  }

  absl::StatusOr<std::vector<AuditRecord>> List(
      const AuditFilter& filter, const PageRequest& page) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(db, SqlTransaction::Mode::kRead,
                            [&]() -> absl::StatusOr<std::vector<AuditRecord>> {
                              SqlStatement query = db.Prepare(kCalls);
                              query.BindInt(1, page.before);
                              if (filter.actor)
                                query.BindText(2, *filter.actor);
                              if (filter.project)
                                query.BindText(3, *filter.project);
                              if (filter.method)
                                query.BindText(4, *filter.method);
                              query.BindTime(5, filter.from_time);
                              if (filter.until_time != absl::InfiniteFuture()) {
                                query.BindTime(6, filter.until_time);
                              }
                              query.BindInt(7, page.limit);
                              std::vector<AuditRecord> records;
                              while (query.Step())
                                records.push_back(ReadCall(query));
                              OPTFARM_RETURN_IF_ERROR(query.status());
                              return records;
                            });
  }

  absl::Status Forget(absl::Time before) override {
    const absl::Time bound = std::min(before, absl::Now() - kYoung);
    int64_t removed = kRowsAStep;
    // In steps, so that calls that are written down wait for one of them.
    while (removed == kRowsAStep) {
      absl::MutexLock lock(&mutex_);
      SqlDatabase& db = *db_;
      const absl::Status status = RunInTransaction(
          db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
            SqlStatement remove = db.Prepare(kOldest);
            remove.BindTime(1, bound);
            remove.BindInt(2, kRowsAStep);
            const absl::Status done = remove.Run();
            removed = db.Changes();
            return done;
          });
      OPTFARM_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }

 private:
  absl::Mutex mutex_;
  const std::unique_ptr<SqlDatabase> db_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<AuditStore> MakeSqlAuditStore(std::unique_ptr<SqlDatabase> db) {
  return std::make_unique<SqlAuditStore>(std::move(db));
}

}  // namespace optfarm::storage
