#include "storage/sql/metadata_store.h"

#include <utility>

#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/sql/blob_owners.h"
#include "storage/sql/measurement_reads.h"
#include "storage/sql/reads.h"
#include "storage/sql/writes.h"

namespace optfarm::storage {
namespace {

constexpr int64_t kResultsToCatchUp = 1000;

}  // namespace

SqlMetadataStore::SqlMetadataStore(SqlConnections connections,
                                   int64_t results_bytes)
    : writer_(std::move(connections.writer)),
      readers_(std::move(connections.readers)),
      results_reader_(std::move(connections.results_reader)),
      memory_(results_bytes) {}

template <typename Question>
auto SqlMetadataStore::Read(Question question)
    -> decltype(question(std::declval<SqlDatabase&>())) {
  SqlReaders::Turn turn(readers_);
  return RunInTransaction(turn.db(), SqlTransaction::Mode::kRead,
                          [&] { return question(turn.db()); });
}

// Questions about a year of results do not hold up those about jobs.
template <typename Question>
auto SqlMetadataStore::ReadResults(Question question, int runs)
    -> decltype(question(std::declval<SqlDatabase&>(), nullptr)) {
  absl::MutexLock lock(&results_mutex_);
  new_results_ = 0;
  SqlDatabase& db = *results_reader_;
  sql::SeriesMemory& memory = memory_;
  return RunInTransaction(
      db, SqlTransaction::Mode::kRead,
      [&]() -> decltype(question(db, nullptr)) {
        results_mutex_.AssertHeld();
        OPTFARM_RETURN_IF_ERROR(memory.CatchUp(db));
        return question(db, memory.usable() ? &memory : nullptr);
      },
      runs);
}

absl::Status SqlMetadataStore::Write(
    absl::FunctionRef<absl::Status(SqlDatabase&)> change) {
  absl::MutexLock lock(&writer_mutex_);
  SqlDatabase& db = *writer_;
  return RunInTransaction(db, SqlTransaction::Mode::kWrite,
                          [&] { return change(db); });
}

absl::Status SqlMetadataStore::CatchUp() {
  new_results_ = 0;
  SqlDatabase& db = *results_reader_;
  sql::SeriesMemory& memory = memory_;
  return RunInTransaction(db, SqlTransaction::Mode::kRead, [&] {
    results_mutex_.AssertHeld();
    return memory.CatchUp(db);
  });
}

// A question after much has come or gone is not the one to read all of it:
// whoever brings the last of so much does, unless somebody asks right now.
void SqlMetadataStore::NoteNewResults(int64_t count) {
  if (new_results_.fetch_add(count) + count < kResultsToCatchUp) return;
  if (!results_mutex_.TryLock()) return;
  // The next question meets the same error, if there is one, and tells it.
  CatchUp().IgnoreError();
  results_mutex_.Unlock();
}

absl::Status SqlMetadataStore::ReadIntoMemory() {
  const absl::Time start = absl::Now();
  absl::MutexLock lock(&results_mutex_);
  OPTFARM_RETURN_IF_ERROR(CatchUp());
  LogInfo("the numbers of ", memory_.points(), " results take ",
          memory_.bytes() >> 20, " MB of memory, read in ",
          absl::ToInt64Milliseconds(absl::Now() - start), " ms");
  return absl::OkStatus();
}

absl::Status SqlMetadataStore::WriteInTurn(const WriteBatch& batch) {
  absl::MutexLock lock(&writer_mutex_);
  SqlDatabase& db = *writer_;
  ResultPlaces& places = places_;
  OPTFARM_RETURN_IF_ERROR(
      RunInTransaction(db, SqlTransaction::Mode::kWrite, [&] {
        writer_mutex_.AssertHeld();
        places.Begin();
        return WriteBatchTo(db, batch, places);
      }));
  places.Keep();
  return absl::OkStatus();
}

absl::Status SqlMetadataStore::Commit(const WriteBatch& batch) {
  OPTFARM_RETURN_IF_ERROR(WriteInTurn(batch));
  NoteNewResults(static_cast<int64_t>(batch.measurements.size()));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RequestMatch>> SqlMetadataStore::FindClientRequest(
    const std::string& id) {
  return Read([&](SqlDatabase& db) { return sql::FindClientRequest(db, id); });
}

absl::StatusOr<StoredJob> SqlMetadataStore::GetJob(const std::string& job_id) {
  return Read([&](SqlDatabase& db) { return sql::GetJob(db, job_id); });
}

absl::StatusOr<TaskRecord> SqlMetadataStore::GetTask(
    const std::string& task_id) {
  return Read([&](SqlDatabase& db) { return sql::GetTask(db, task_id); });
}

absl::StatusOr<std::vector<StoredJob>> SqlMetadataStore::ListJobs(
    const JobFilter& filter, const PageRequest& page) {
  return Read([&](SqlDatabase& db) { return sql::ListJobs(db, filter, page); });
}

absl::StatusOr<std::vector<StoredJob>> SqlMetadataStore::LoadLiveJobs() {
  return Read([](SqlDatabase& db) { return sql::LoadLiveJobs(db); });
}

absl::StatusOr<std::vector<v1::JobEvent>> SqlMetadataStore::ReadEvents(
    const std::string& job_id, int64_t after_sequence, int limit,
    bool with_logs) {
  return Read([&](SqlDatabase& db) {
    return sql::ReadEvents(db, job_id, after_sequence, limit, with_logs);
  });
}

absl::StatusOr<v1::Report> SqlMetadataStore::GetReport(
    const std::string& job_id) {
  return Read([&](SqlDatabase& db) { return sql::GetReport(db, job_id); });
}

absl::StatusOr<std::vector<MeasurementRecord>>
SqlMetadataStore::QueryMeasurements(const MeasurementFilter& filter,
                                    const PageRequest& page) {
  return ReadResults([&](SqlDatabase& db, const sql::SeriesMemory* memory) {
    return sql::QueryMeasurements(db, memory, filter, page);
  });
}

absl::StatusOr<std::vector<MeasurementRecord>>
SqlMetadataStore::GetMeasurements(absl::Span<const int64_t> result_ids) {
  return ReadResults([&](SqlDatabase& db, const sql::SeriesMemory*) {
    return sql::GetMeasurements(db, result_ids);
  });
}

absl::StatusOr<SeriesList> SqlMetadataStore::ListSeries(
    const MeasurementFilter& filter, const SeriesRequest& request) {
  return ReadResults(
      [&](SqlDatabase& db, const sql::SeriesMemory* memory) {
        return sql::ListSeries(db, memory, filter, request);
      },
      // What was taken is not taken again.
      request.take ? 1 : kMostRuns);
}

absl::Status SqlMetadataStore::AddDetails(
    absl::Span<PointRecord* const> points) {
  return ReadResults([&](SqlDatabase& db, const sql::SeriesMemory*) {
    return sql::AddDetails(db, points);
  });
}

absl::StatusOr<RetentionCounts> SqlMetadataStore::Prune(
    const RetentionPolicy& policy) {
  RetentionCounts counts;
  absl::MutexLock lock(&retention_mutex_);
  const sql::EndedJob start = logs_gone_;
  sql::EndedJob logs_gone;
  OPTFARM_RETURN_IF_ERROR(Write([&](SqlDatabase& db) -> absl::Status {
    logs_gone = start;
    OPTFARM_ASSIGN_OR_RETURN(counts, sql::Prune(db, policy, logs_gone));
    return absl::OkStatus();
  }));
  logs_gone_ = logs_gone;
  if (counts.jobs > 0) NoteNewResults(kResultsToCatchUp);
  if (!counts.more) {
    SqlReaders::Turn turn(readers_);
    AfterPruning(turn.db());
  }
  return counts;
}

absl::StatusOr<std::optional<std::string>> SqlMetadataStore::FindAction(
    const std::string& digest, const std::string& tool_version) {
  return Read([&](SqlDatabase& db) {
    return sql::FindAction(db, digest, tool_version);
  });
}

absl::StatusOr<std::vector<DeviceRecord>> SqlMetadataStore::ListDevices() {
  return Read([](SqlDatabase& db) { return sql::ListDevices(db); });
}

absl::StatusOr<std::vector<DeviceStateRecord>>
SqlMetadataStore::ListDeviceStates(const std::string& device,
                                   const PageRequest& page) {
  return Read(
      [&](SqlDatabase& db) { return sql::ListDeviceStates(db, device, page); });
}

absl::StatusOr<std::vector<DeviceStateRecord>>
SqlMetadataStore::LatestDeviceStates() {
  return Read([](SqlDatabase& db) { return sql::LatestDeviceStates(db); });
}

absl::StatusOr<std::vector<std::string>> SqlMetadataStore::ListProjects(
    const std::string& after, int limit) {
  return Read(
      [&](SqlDatabase& db) { return sql::ListProjects(db, after, limit); });
}

absl::StatusOr<std::vector<v1::Recipe>> SqlMetadataStore::ListRecipes() {
  return Read([](SqlDatabase& db) { return sql::ListRecipes(db); });
}

absl::StatusOr<bool> SqlMetadataStore::AnyJobHasBlob(
    absl::Span<const std::string> job_ids, const std::string& sha256) {
  return Read(
      [&](SqlDatabase& db) { return sql::AnyJobHasBlob(db, job_ids, sha256); });
}

absl::StatusOr<bool> SqlMetadataStore::ProjectHasBlob(
    const std::string& project, const std::string& sha256) {
  return Read([&](SqlDatabase& db) {
    return sql::ProjectHasBlob(db, project, sha256);
  });
}

absl::StatusOr<ProjectUsage> SqlMetadataStore::GetProjectUsage(
    const std::string& project, absl::Time since) {
  return Read([&](SqlDatabase& db) {
    return sql::GetProjectUsage(db, project, since);
  });
}

absl::StatusOr<std::vector<ProjectBlobRecord>>
SqlMetadataStore::ListProjectBlobs(const std::string& project,
                                   const BlobPageRequest& page) {
  return Read([&](SqlDatabase& db) {
    return sql::ListProjectBlobs(db, project, page);
  });
}

absl::StatusOr<BlobRemoval> SqlMetadataStore::RemoveProjectBlob(
    const std::string& project, const std::string& sha256) {
  BlobRemoval removal;
  OPTFARM_RETURN_IF_ERROR(Write([&](SqlDatabase& db) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(removal,
                             sql::RemoveProjectBlob(db, project, sha256));
    return absl::OkStatus();
  }));
  return removal;
}

absl::Status SqlMetadataStore::GiveBackBlobs(
    absl::Span<const std::string> sha256) {
  return Write([&](SqlDatabase& db) { return sql::GiveBackBlobs(db, sha256); });
}

absl::StatusOr<std::vector<RemovedBlob>> SqlMetadataStore::ListRemovedBlobs(
    const std::string& after, int limit) {
  return Read(
      [&](SqlDatabase& db) { return sql::ListRemovedBlobs(db, after, limit); });
}

absl::Status SqlMetadataStore::ForgetRemovedBlobs(
    absl::Span<const std::string> sha256) {
  return Write(
      [&](SqlDatabase& db) { return sql::ForgetRemovedBlobs(db, sha256); });
}

absl::StatusOr<absl::flat_hash_set<std::string>> SqlMetadataStore::LiveBlobs() {
  return Read([](SqlDatabase& db) { return sql::LiveBlobs(db); });
}

void SqlMetadataStore::AfterPruning(SqlDatabase&) {}

}  // namespace optfarm::storage
