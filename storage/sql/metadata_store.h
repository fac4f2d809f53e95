// MetadataStore in a database that speaks SQL: one connection that writes, some
// that read, so that a long list does not hold up a completion, and one for
// questions about results with their numbers in memory. What differs from
// engine to engine is in the connections and in a class of the engine's own.

#ifndef OPTFARM_STORAGE_SQL_METADATA_STORE_H_
#define OPTFARM_STORAGE_SQL_METADATA_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "storage/metadata_store.h"
#include "storage/sql/database.h"
#include "storage/sql/readers.h"
#include "storage/sql/result_places.h"
#include "storage/sql/retention.h"
#include "storage/sql/run.h"
#include "storage/sql/series_memory.h"

namespace optfarm::storage {

// Room for the numbers of some four million results.
inline constexpr int64_t kResultsBytes = int64_t{256} << 20;

// Connections to one database whose schema is up to date.
struct SqlConnections {
  std::unique_ptr<SqlDatabase> writer;
  // As many questions at once; others wait.
  std::vector<std::unique_ptr<SqlDatabase>> readers;
  std::unique_ptr<SqlDatabase> results_reader;
};

// Backup is the engine's.
class SqlMetadataStore : public MetadataStore {
 public:
  // The numbers of results take at most `results_bytes` of memory.
  SqlMetadataStore(SqlConnections connections, int64_t results_bytes);

  // Reads the numbers of results, which the first question does otherwise.
  absl::Status ReadIntoMemory();

  absl::Status Commit(const WriteBatch& batch) override;
  absl::StatusOr<std::optional<RequestMatch>> FindClientRequest(
      const std::string& id) override;
  absl::StatusOr<StoredJob> GetJob(const std::string& job_id) override;
  absl::StatusOr<TaskRecord> GetTask(const std::string& task_id) override;
  absl::StatusOr<std::vector<StoredJob>> ListJobs(
      const JobFilter& filter, const PageRequest& page) override;
  absl::StatusOr<std::vector<StoredJob>> LoadLiveJobs() override;
  absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(
      const std::string& job_id, int64_t after_sequence, int limit,
      bool with_logs) override;
  absl::StatusOr<v1::Report> GetReport(const std::string& job_id) override;
  absl::StatusOr<std::vector<MeasurementRecord>> QueryMeasurements(
      const MeasurementFilter& filter, const PageRequest& page) override;
  absl::StatusOr<std::vector<MeasurementRecord>> GetMeasurements(
      absl::Span<const int64_t> result_ids) override;
  absl::StatusOr<SeriesList> ListSeries(const MeasurementFilter& filter,
                                        const SeriesRequest& request) override;
  absl::Status AddDetails(absl::Span<PointRecord* const> points) override;
  absl::StatusOr<RetentionCounts> Prune(const RetentionPolicy& policy) override;
  absl::StatusOr<std::optional<std::string>> FindAction(
      const std::string& digest, const std::string& tool_version) override;
  absl::StatusOr<std::vector<DeviceRecord>> ListDevices() override;
  absl::StatusOr<std::vector<DeviceStateRecord>> ListDeviceStates(
      const std::string& device, const PageRequest& page) override;
  absl::StatusOr<std::vector<DeviceStateRecord>> LatestDeviceStates() override;
  absl::StatusOr<std::vector<std::string>> ListProjects(
      const std::string& after, int limit) override;
  absl::StatusOr<std::vector<v1::Recipe>> ListRecipes() override;
  absl::StatusOr<bool> AnyJobHasBlob(absl::Span<const std::string> job_ids,
                                     const std::string& sha256) override;
  absl::StatusOr<bool> ProjectHasBlob(const std::string& project,
                                      const std::string& sha256) override;
  absl::StatusOr<ProjectUsage> GetProjectUsage(const std::string& project,
                                               absl::Time since) override;
  absl::StatusOr<std::vector<ProjectBlobRecord>> ListProjectBlobs(
      const std::string& project, const BlobPageRequest& page) override;
  absl::StatusOr<BlobRemoval> RemoveProjectBlob(
      const std::string& project, const std::string& sha256) override;
  absl::Status GiveBackBlobs(absl::Span<const std::string> sha256) override;
  absl::StatusOr<std::vector<RemovedBlob>> ListRemovedBlobs(
      const std::string& after, int limit) override;
  absl::Status ForgetRemovedBlobs(
      absl::Span<const std::string> sha256) override;
  absl::StatusOr<absl::flat_hash_set<std::string>> LiveBlobs() override;

 protected:
  // Prune has let all go that is to go. `reader` is one of the readers, without
  // a transaction.
  virtual void AfterPruning(SqlDatabase& reader);

 private:
  template <typename Question>
  auto Read(Question question)
      -> decltype(question(std::declval<SqlDatabase&>()));
  template <typename Question>
  auto ReadResults(Question question, int runs = kMostRuns)
      -> decltype(question(std::declval<SqlDatabase&>(), nullptr));
  // `change` may run more than once; then what it did before was rolled back.
  absl::Status Write(absl::FunctionRef<absl::Status(SqlDatabase&)> change);
  absl::Status WriteInTurn(const WriteBatch& batch);
  absl::Status CatchUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(results_mutex_);
  void NoteNewResults(int64_t count);

  absl::Mutex writer_mutex_;
  const std::unique_ptr<SqlDatabase> writer_ ABSL_PT_GUARDED_BY(writer_mutex_);
  ResultPlaces places_ ABSL_GUARDED_BY(writer_mutex_);
  SqlReaders readers_;
  absl::Mutex results_mutex_;
  const std::unique_ptr<SqlDatabase> results_reader_
      ABSL_PT_GUARDED_BY(results_mutex_);
  sql::SeriesMemory memory_ ABSL_GUARDED_BY(results_mutex_);
  absl::Mutex retention_mutex_;
  // No job up to there has logs.
  sql::EndedJob logs_gone_ ABSL_GUARDED_BY(retention_mutex_);
  // That came since memory_ was brought up to date.
  std::atomic<int64_t> new_results_{0};
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_METADATA_STORE_H_
