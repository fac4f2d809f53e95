#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "storage/select_columns.h"
#include "storage/sqlite_database.h"
#include "storage/sqlite_migrations.h"
#include "storage/webhook_store.h"

namespace optfarm::storage {
namespace {

// Times are microseconds since 1970 (UTC).
constexpr char kWebhooks[] = R"sql(
CREATE TABLE webhooks (
  webhook_number INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL UNIQUE,
  url TEXT NOT NULL,
  failures INTEGER NOT NULL,
  next_time INTEGER,
  last_error TEXT NOT NULL,
  create_time INTEGER NOT NULL,
  close_time INTEGER,              -- NULL: still to be delivered
  outcome TEXT NOT NULL
);
CREATE INDEX webhooks_open ON webhooks(close_time);
)sql";

constexpr SqliteMigration kMigrations[] = {{"webhooks", kWebhooks}};

constexpr char kOpenWebhooks[] =
    "SELECT job_id, url, failures, next_time FROM webhooks"
    " WHERE close_time IS NULL ORDER BY webhook_number";

WebhookRecord ReadWebhook(const SqliteStatement& row) {
  constexpr SelectColumns kWebhook(kOpenWebhooks);
  WebhookRecord webhook;
  webhook.job_id = row.Text(kWebhook["job_id"]);
  webhook.url = row.Text(kWebhook["url"]);
  webhook.failures = static_cast<int>(row.Int(kWebhook["failures"]));
  webhook.next_time = row.Time(kWebhook["next_time"]);
  return webhook;
}

class SqliteWebhookStore final : public WebhookStore {
 public:
  explicit SqliteWebhookStore(std::unique_ptr<SqliteDatabase> db)
      : db_(std::move(db)) {}

  absl::Status Add(const WebhookRecord& webhook, absl::Time now) override {
    absl::MutexLock lock(&mutex_);
    SqliteStatement insert = db_->Prepare(
        "INSERT OR IGNORE INTO webhooks (job_id, url, failures, next_time,"
        " last_error, create_time, outcome) VALUES (?1, ?2, 0, NULL, '', ?3,"
        " '')");
    insert.BindText(1, webhook.job_id);
    insert.BindText(2, webhook.url);
    insert.BindTime(3, now);
    return insert.Run();
  }

  absl::Status Postpone(const WebhookRecord& webhook,
                        absl::string_view error) override {
    absl::MutexLock lock(&mutex_);
    SqliteStatement update = db_->Prepare(
        "UPDATE webhooks SET failures = ?2, next_time = ?3, last_error = ?4"
        " WHERE job_id = ?1");
    update.BindText(1, webhook.job_id);
    update.BindInt(2, webhook.failures);
    update.BindTime(3, webhook.next_time);
    update.BindText(4, error);
    return update.Run();
  }

  absl::Status Close(const std::string& job_id, absl::string_view outcome,
                     absl::Time now) override {
    absl::MutexLock lock(&mutex_);
    SqliteStatement update = db_->Prepare(
        "UPDATE webhooks SET close_time = ?2, outcome = ?3 WHERE job_id = ?1");
    update.BindText(1, job_id);
    update.BindTime(2, now);
    update.BindText(3, outcome);
    return update.Run();
  }

  absl::StatusOr<std::vector<WebhookRecord>> ListOpen() override {
    absl::MutexLock lock(&mutex_);
    SqliteStatement query = db_->Prepare(kOpenWebhooks);
    std::vector<WebhookRecord> webhooks;
    while (query.Step()) webhooks.push_back(ReadWebhook(query));
    OPTFARM_RETURN_IF_ERROR(query.status());
    return webhooks;
  }

  absl::Status Forget(absl::Time before) override {
    absl::MutexLock lock(&mutex_);
    SqliteStatement remove =
        db_->Prepare("DELETE FROM webhooks WHERE close_time < ?1");
    remove.BindTime(1, before);
    return remove.Run();
  }

 private:
  absl::Mutex mutex_;
  const std::unique_ptr<SqliteDatabase> db_ ABSL_PT_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<WebhookStore>> Open(const std::string& path,
                                                   absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> db,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(MigrateSqlite(*db, kMigrations, now));
  return std::make_unique<SqliteWebhookStore>(std::move(db));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WebhookStore>> OpenSqliteWebhookStore(
    const std::string& path, absl::Time now) {
  absl::StatusOr<std::unique_ptr<WebhookStore>> store = Open(path, now);
  if (!store.ok()) {
    return Annotate(store.status(),
                    absl::StrCat("opening the webhooks '", path, "'"));
  }
  return store;
}

}  // namespace optfarm::storage
