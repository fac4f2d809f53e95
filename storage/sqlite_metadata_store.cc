#include "storage/sqlite_metadata_store.h"

#include <atomic>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/series_memory.h"
#include "storage/sqlite_backup.h"
#include "storage/sqlite_database.h"
#include "storage/sqlite_measurement_reads.h"
#include "storage/sqlite_migrations.h"
#include "storage/sqlite_readers.h"
#include "storage/sqlite_reads.h"
#include "storage/sqlite_retention.h"
#include "storage/sqlite_writes.h"

namespace optfarm::storage {

namespace {

// Questions at once; others wait.
constexpr int kReaders = 4;

class SqliteMetadataStore final : public MetadataStore {
 public:
  SqliteMetadataStore(std::string path, std::unique_ptr<SqliteDatabase> writer,
                      std::vector<std::unique_ptr<SqliteDatabase>> readers,
                      std::unique_ptr<SqliteDatabase> results_reader,
                      int64_t results_bytes)
      : path_(std::move(path)),
        writer_(std::move(writer)),
        readers_(std::move(readers)),
        results_reader_(std::move(results_reader)),
        memory_(results_bytes) {}

  absl::Status ReadIntoMemory() {
    const absl::Time start = absl::Now();
    absl::MutexLock lock(&results_mutex_);
    OPTFARM_RETURN_IF_ERROR(CatchUp());
    LogInfo("the numbers of ", memory_.points(), " results take ",
            memory_.bytes() >> 20, " MB of memory, read in ",
            absl::ToInt64Milliseconds(absl::Now() - start), " ms");
    return absl::OkStatus();
  }

  absl::Status Commit(const WriteBatch& batch) override {
    OPTFARM_RETURN_IF_ERROR(
        Write([&](SqliteDatabase& db) { return WriteToSqlite(db, batch); }));
    NoteNewResults(static_cast<int64_t>(batch.measurements.size()));
    return absl::OkStatus();
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
    return ReadResults(
        [&](SqliteDatabase& db, const sqlite::SeriesMemory* memory) {
          return sqlite::QueryMeasurements(db, memory, filter, page);
        });
  }
  absl::StatusOr<std::vector<MeasurementRecord>> GetMeasurements(
      absl::Span<const int64_t> result_ids) override {
    return ReadResults([&](SqliteDatabase& db, const sqlite::SeriesMemory*) {
      return sqlite::GetMeasurements(db, result_ids);
    });
  }
  absl::StatusOr<SeriesList> ListSeries(const MeasurementFilter& filter,
                                        const SeriesRequest& request) override {
    return ReadResults(
        [&](SqliteDatabase& db, const sqlite::SeriesMemory* memory) {
          return sqlite::ListSeries(db, memory, filter, request);
        });
  }
  absl::Status AddDetails(absl::Span<PointRecord* const> points) override {
    return ReadResults([&](SqliteDatabase& db, const sqlite::SeriesMemory*) {
      return sqlite::AddDetails(db, points);
    });
  }
  absl::StatusOr<RetentionCounts> Prune(
      const RetentionPolicy& policy) override {
    RetentionCounts counts;
    absl::MutexLock lock(&retention_mutex_);
    sqlite::EndedJob logs_gone = logs_gone_;
    OPTFARM_RETURN_IF_ERROR(Write([&](SqliteDatabase& db) -> absl::Status {
      OPTFARM_ASSIGN_OR_RETURN(counts, sqlite::Prune(db, policy, logs_gone));
      return absl::OkStatus();
    }));
    logs_gone_ = logs_gone;
    if (counts.jobs > 0) NoteNewResults(kResultsToCatchUp);
    if (!counts.more) ShrinkLog();
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
  absl::StatusOr<bool> AnyJobHasBlob(absl::Span<const std::string> job_ids,
                                     const std::string& sha256) override {
    return Read([&](SqliteDatabase& db) {
      return sqlite::AnyJobHasBlob(db, job_ids, sha256);
    });
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
    SqliteReaders::Turn turn(readers_);
    return Ask(turn.db(), question);
  }
  // Questions about a year of results do not hold up those about jobs.
  template <typename Question>
  auto ReadResults(Question question)
      -> decltype(question(std::declval<SqliteDatabase&>(), nullptr)) {
    absl::MutexLock lock(&results_mutex_);
    new_results_ = 0;
    return Ask(*results_reader_,
               [&](SqliteDatabase& db) -> decltype(question(db, nullptr)) {
                 OPTFARM_RETURN_IF_ERROR(memory_.CatchUp(db));
                 return question(db, memory_.usable() ? &memory_ : nullptr);
               });
  }

  template <typename Change>
  absl::Status Write(Change change) {
    absl::MutexLock lock(&writer_mutex_);
    SqliteTransaction transaction(*writer_);
    OPTFARM_RETURN_IF_ERROR(transaction.status());
    OPTFARM_RETURN_IF_ERROR(change(*writer_));
    return transaction.Commit();
  }

  // Moves all of the write-ahead log into the database and empties it. Where
  // somebody still reads an old state, a later turn does.
  void ShrinkLog() {
    SqliteReaders::Turn turn(readers_);
    absl::Status status = turn.db().Run("PRAGMA busy_timeout = 0");
    if (status.ok()) {
      turn.db().Run("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
      status = turn.db().Run("PRAGMA busy_timeout = 10000");
    }
    if (!status.ok()) LogWarning("shrinking the log: ", status.message());
  }

  absl::Status CatchUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(results_mutex_) {
    new_results_ = 0;
    return Ask(*results_reader_,
               [&](SqliteDatabase& db) { return memory_.CatchUp(db); });
  }

  // A question after much has come or gone is not the one to read all of it:
  // whoever brings the last of so much does, unless somebody asks right now.
  void NoteNewResults(int64_t count) {
    if (new_results_.fetch_add(count) + count < kResultsToCatchUp) return;
    if (!results_mutex_.TryLock()) return;
    // The next question meets the same error, if there is one, and tells it.
    CatchUp().IgnoreError();
    results_mutex_.Unlock();
  }

  static constexpr int64_t kResultsToCatchUp = 1000;

  const std::string path_;
  absl::Mutex writer_mutex_;
  const std::unique_ptr<SqliteDatabase> writer_
      ABSL_PT_GUARDED_BY(writer_mutex_);
  SqliteReaders readers_;
  absl::Mutex results_mutex_;
  const std::unique_ptr<SqliteDatabase> results_reader_
      ABSL_PT_GUARDED_BY(results_mutex_);
  sqlite::SeriesMemory memory_ ABSL_GUARDED_BY(results_mutex_);
  absl::Mutex retention_mutex_;
  // No job up to there has logs.
  sqlite::EndedJob logs_gone_ ABSL_GUARDED_BY(retention_mutex_);
  // That came since memory_ was brought up to date.
  std::atomic<int64_t> new_results_{0};
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
                                                    absl::Time now,
                                                    int64_t results_bytes) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> writer,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(CheckIntegrity(*writer));
  OPTFARM_RETURN_IF_ERROR(MigrateSqlite(*writer, AllSqliteMigrations(), now));
  std::vector<std::unique_ptr<SqliteDatabase>> readers;
  for (int i = 0; i < kReaders; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(readers.emplace_back(),
                             SqliteDatabase::Open(path));
  }
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> results_reader,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(results_reader->Run("PRAGMA cache_size = -65536"));
  auto store = std::make_unique<SqliteMetadataStore>(
      path, std::move(writer), std::move(readers), std::move(results_reader),
      results_bytes);
  OPTFARM_RETURN_IF_ERROR(store->ReadIntoMemory());
  return store;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetadataStore>> OpenSqliteMetadataStore(
    const std::string& path, absl::Time now, int64_t results_bytes) {
  absl::StatusOr<std::unique_ptr<MetadataStore>> store =
      Open(path, now, results_bytes);
  if (!store.ok()) {
    return Annotate(store.status(),
                    absl::StrCat("opening the database '", path, "'"));
  }
  return store;
}

}  // namespace optfarm::storage
