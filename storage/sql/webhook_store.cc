#include "storage/webhook_store.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "storage/sql/run.h"
#include "storage/sql/select_columns.h"
#include "storage/sql/stores.h"

namespace optfarm::storage {
namespace {

constexpr char kOpenWebhooks[] =
    "SELECT job_id, url, failures, next_time FROM webhooks"
    " WHERE close_time IS NULL ORDER BY webhook_number";

WebhookRecord ReadWebhook(const SqlStatement& row) {
  constexpr SelectColumns kWebhook(kOpenWebhooks);
  WebhookRecord webhook;
  webhook.job_id = row.Text(kWebhook["job_id"]);
  webhook.url = row.Text(kWebhook["url"]);
  webhook.failures = static_cast<int>(row.Int(kWebhook["failures"]));
  webhook.next_time = row.Time(kWebhook["next_time"]);
  return webhook;
}

class SqlWebhookStore final : public WebhookStore {
 public:
  explicit SqlWebhookStore(std::unique_ptr<SqlDatabase> db)
      : db_(std::move(db)) {}

  absl::Status Add(const WebhookRecord& webhook, absl::Time now) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement insert = db.Prepare(
              "INSERT INTO webhooks (job_id, url, failures, next_time,"
              " last_error, create_time, outcome) VALUES (?1, ?2, 0, NULL, '', "
              "?3,"
              " '') ON CONFLICT DO NOTHING");
          insert.BindText(1, webhook.job_id);
          insert.BindText(2, webhook.url);
          insert.BindTime(3, now);
          return insert.Run();
        });
  }

  absl::Status Postpone(const WebhookRecord& webhook,
                        absl::string_view error) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(db, SqlTransaction::Mode::kWrite,
                            [&]() -> absl::Status {
                              SqlStatement update = db.Prepare(
                                  "UPDATE webhooks SET failures = ?2, "
                                  "next_time = ?3, last_error = ?4"
                                  " WHERE job_id = ?1");
                              update.BindText(1, webhook.job_id);
                              update.BindInt(2, webhook.failures);
                              update.BindTime(3, webhook.next_time);
                              update.BindText(4, error);
                              return update.Run();
                            });
  }

  absl::Status Close(const std::string& job_id, absl::string_view outcome,
                     absl::Time now) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(db, SqlTransaction::Mode::kWrite,
                            [&]() -> absl::Status {
                              SqlStatement update = db.Prepare(
                                  "UPDATE webhooks SET close_time = ?2, "
                                  "outcome = ?3 WHERE job_id = ?1");
                              update.BindText(1, job_id);
                              update.BindTime(2, now);
                              update.BindText(3, outcome);
                              return update.Run();
                            });
  }

  absl::StatusOr<std::vector<WebhookRecord>> ListOpen() override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kRead,
        [&]() -> absl::StatusOr<std::vector<WebhookRecord>> {
          SqlStatement query = db.Prepare(kOpenWebhooks);
          std::vector<WebhookRecord> webhooks;
          while (query.Step()) webhooks.push_back(ReadWebhook(query));
          OPTFARM_RETURN_IF_ERROR(query.status());
          return webhooks;
        });
  }

  absl::Status Forget(absl::Time before) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement remove =
              db.Prepare("DELETE FROM webhooks WHERE close_time < ?1");
          remove.BindTime(1, before);
          return remove.Run();
        });
  }

 private:
  absl::Mutex mutex_;
  const std::unique_ptr<SqlDatabase> db_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<WebhookStore> MakeSqlWebhookStore(
    std::unique_ptr<SqlDatabase> db) {
  return std::make_unique<SqlWebhookStore>(std::move(db));
}

}  // namespace optfarm::storage
