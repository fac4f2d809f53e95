#include "storage/sqlite_metadata_store.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "storage/sqlite_backup.h"
#include "storage/sqlite_database.h"
#include "storage/sqlite_measurement_reads.h"
#include "storage/sqlite_migrations.h"
#include "storage/sqlite_reads.h"
#include "storage/sqlite_retention.h"
#include "storage/sqlite_writes.h"

namespace optfarm::storage {

namespace {

class SqliteMetadataStore final : public MetadataStore {
 public:
  SqliteMetadataStore(std::string path, std::unique_ptr<SqliteDatabase> writer,
                      std::unique_ptr<SqliteDatabase> reader,
                      std::unique_ptr<SqliteDatabase> results_reader)
      : path_(std::move(path)),
        writer_(std::move(writer)),
        reader_(std::move(reader)),
        results_reader_(std::move(results_reader)) {}

  absl::Status Commit(const WriteBatch& batch) override {
    absl::MutexLock lock(&writer_mutex_);
    SqliteTransaction transaction(*writer_);
    OPTFARM_RETURN_IF_ERROR(transaction.status());
    OPTFARM_RETURN_IF_ERROR(WriteToSqlite(*writer_, batch));
    return transaction.Commit();
  }

  absl::StatusOr<std::optional<RequestMatch>> FindClientRequest(
      const std::string& id) override {
    return Read(
        [&](SqliteDatabase& db) { return sqlite::FindClientRequest(db, id); });
  }
  absl::StatusOr<StoredJob> GetJob(const std::string& job_id) override {
    return Read([&](SqliteDatabase& db) { return sqlite::GetJob(db, job_id); });
  }
  absl::StatusOr<TaskRecord> GetTask(const std::string& task_id) override {
    return Read(
        [&](SqliteDatabase& db) { return sqlite::GetTask(db, task_id); });
  }
  absl::StatusOr<std::vector<StoredJob>> ListJobs(
      const JobFilter& filter, const PageRequest& page) override {
    return Read(
        [&](SqliteDatabase& db) { return sqlite::ListJobs(db, filter, page); });
  }
  absl::StatusOr<std::vector<StoredJob>> LoadLiveJobs() override {
    return Read([](SqliteDatabase& db) { return sqlite::LoadLiveJobs(db); });
  }
  absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(
      const std::string& job_id, int64_t after_sequence, int limit,
      bool with_logs) override {
    return Read([&](SqliteDatabase& db) {
      return sqlite::ReadEvents(db, job_id, after_sequence, limit, with_logs);
    });
  }
  absl::StatusOr<v1::Report> GetReport(const std::string& job_id) override {
    return Read(
        [&](SqliteDatabase& db) { return sqlite::GetReport(db, job_id); });
  }
  absl::StatusOr<std::vector<MeasurementRecord>> QueryMeasurements(
      const MeasurementFilter& filter, const PageRequest& page) override {
    return ReadResults([&](SqliteDatabase& db) {
      return sqlite::QueryMeasurements(db, filter, page);
    });
  }
  absl::StatusOr<SeriesList> ListSeries(const MeasurementFilter& filter,
                                        const SeriesRequest& request) override {
    return ReadResults([&](SqliteDatabase& db) {
      return sqlite::ListSeries(db, filter, request);
    });
  }
  absl::Status AddDetails(absl::Span<PointRecord* const> points) override {
    return ReadResults(
        [&](SqliteDatabase& db) { return sqlite::AddDetails(db, points); });
  }
  absl::StatusOr<RetentionCounts> Prune(
      const RetentionPolicy& policy) override {
    absl::MutexLock lock(&writer_mutex_);
    SqliteTransaction transaction(*writer_);
    OPTFARM_RETURN_IF_ERROR(transaction.status());
    OPTFARM_ASSIGN_OR_RETURN(RetentionCounts counts,
                             sqlite::Prune(*writer_, policy));
    OPTFARM_RETURN_IF_ERROR(transaction.Commit());
    return counts;
  }
  absl::Status Backup(const std::string& path) override {
    return BackupSqlite(path_, path);
  }
  absl::StatusOr<std::optional<std::string>> FindAction(
      const std::string& digest, const std::string& tool_version) override {
    return Read([&](SqliteDatabase& db) {
      return sqlite::FindAction(db, digest, tool_version);
    });
  }
  absl::StatusOr<std::vector<DeviceRecord>> ListDevices() override {
    return Read([](SqliteDatabase& db) { return sqlite::ListDevices(db); });
  }
  absl::StatusOr<std::vector<v1::Recipe>> ListRecipes() override {
    return Read([](SqliteDatabase& db) { return sqlite::ListRecipes(db); });
  }
  absl::StatusOr<bool> ProjectHasBlob(const std::string& project,
                                      const std::string& sha256) override {
    return Read([&](SqliteDatabase& db) {
      return sqlite::ProjectHasBlob(db, project, sha256);
    });
  }
  absl::StatusOr<ProjectUsage> GetProjectUsage(const std::string& project,
                                               absl::Time since) override {
    return Read([&](SqliteDatabase& db) {
      return sqlite::GetProjectUsage(db, project, since);
    });
  }
  absl::StatusOr<absl::flat_hash_set<std::string>> LiveBlobs() override {
    return Read([](SqliteDatabase& db) { return sqlite::LiveBlobs(db); });
  }

 private:
  // Answers one question from one state of the database.
  template <typename Question>
  static auto Ask(SqliteDatabase& db, Question question)
      -> decltype(question(db)) {
    SqliteTransaction snapshot(db, SqliteTransaction::Mode::kRead);
    OPTFARM_RETURN_IF_ERROR(snapshot.status());
    auto answer = question(db);
    OPTFARM_RETURN_IF_ERROR(snapshot.Commit());
    return answer;
  }
  template <typename Question>
  auto Read(Question question)
      -> decltype(question(std::declval<SqliteDatabase&>())) {
    absl::MutexLock lock(&reader_mutex_);
    return Ask(*reader_, question);
  }
  // Questions about a year of results do not hold up those about jobs.
  template <typename Question>
  auto ReadResults(Question question)
      -> decltype(question(std::declval<SqliteDatabase&>())) {
    absl::MutexLock lock(&results_mutex_);
    return Ask(*results_reader_, question);
  }

  const std::string path_;
  absl::Mutex writer_mutex_;
  const std::unique_ptr<SqliteDatabase> writer_
      ABSL_PT_GUARDED_BY(writer_mutex_);
  absl::Mutex reader_mutex_;
  const std::unique_ptr<SqliteDatabase> reader_
      ABSL_PT_GUARDED_BY(reader_mutex_);
  absl::Mutex results_mutex_;
  const std::unique_ptr<SqliteDatabase> results_reader_
      ABSL_PT_GUARDED_BY(results_mutex_);
};

absl::Status CheckIntegrity(SqliteDatabase& db) {
  SqliteStatement check = db.Prepare("PRAGMA quick_check(1)");
  if (!check.Step()) return check.status();
  if (check.Text(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the database is damaged (",
                                          check.Text(0),
                                          "); restore it from a backup"));
}

absl::StatusOr<std::unique_ptr<MetadataStore>> Open(const std::string& path,
                                                    absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> writer,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(CheckIntegrity(*writer));
  OPTFARM_RETURN_IF_ERROR(MigrateSqlite(*writer, AllSqliteMigrations(), now));
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> reader,
                           SqliteDatabase::Open(path));
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> results_reader,
                           SqliteDatabase::Open(path));
  // What series are judged by stays in memory from one question to the next.
  OPTFARM_RETURN_IF_ERROR(results_reader->Run("PRAGMA cache_size = -65536"));
  return std::make_unique<SqliteMetadataStore>(
      path, std::move(writer), std::move(reader), std::move(results_reader));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetadataStore>> OpenSqliteMetadataStore(
    const std::string& path, absl::Time now) {
  absl::StatusOr<std::unique_ptr<MetadataStore>> store = Open(path, now);
  if (!store.ok()) {
    return Annotate(store.status(),
                    absl::StrCat("opening the database '", path, "'"));
  }
  return store;
}

}  // namespace optfarm::storage
