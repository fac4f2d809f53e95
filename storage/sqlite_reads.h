// The reading half of the SQLite metadata store: one function a question, with
// the meaning and the errors of the MetadataStore method of the same name.

#ifndef OPTFARM_STORAGE_SQLITE_READS_H_
#define OPTFARM_STORAGE_SQLITE_READS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/metadata_store.h"
#include "storage/sqlite_database.h"

namespace optfarm::storage::sqlite {

absl::StatusOr<std::optional<RequestMatch>> FindClientRequest(
    SqliteDatabase& db, const std::string& client_request_id);
absl::StatusOr<StoredJob> GetJob(SqliteDatabase& db, const std::string& job_id);
absl::StatusOr<TaskRecord> GetTask(SqliteDatabase& db,
                                   const std::string& task_id);
absl::StatusOr<std::vector<StoredJob>> ListJobs(SqliteDatabase& db,
                                                const JobFilter& filter,
                                                const PageRequest& page);
absl::StatusOr<std::vector<StoredJob>> LoadLiveJobs(SqliteDatabase& db);
absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(SqliteDatabase& db,
                                                     const std::string& job_id,
                                                     int64_t after_sequence,
                                                     int limit, bool with_logs);
absl::StatusOr<v1::Report> GetReport(SqliteDatabase& db,
                                     const std::string& job_id);
absl::StatusOr<std::optional<std::string>> FindAction(
    SqliteDatabase& db, const std::string& action_digest,
    const std::string& tool_version);
absl::StatusOr<std::vector<DeviceRecord>> ListDevices(SqliteDatabase& db);
absl::StatusOr<std::vector<v1::Recipe>> ListRecipes(SqliteDatabase& db);
absl::StatusOr<bool> AnyJobHasBlob(SqliteDatabase& db,
                                   absl::Span<const std::string> job_ids,
                                   const std::string& sha256);
absl::StatusOr<bool> ProjectHasBlob(SqliteDatabase& db,
                                    const std::string& project,
                                    const std::string& sha256);
absl::StatusOr<ProjectUsage> GetProjectUsage(SqliteDatabase& db,
                                             const std::string& project,
                                             absl::Time since);
absl::StatusOr<absl::flat_hash_set<std::string>> LiveBlobs(SqliteDatabase& db);

}  // namespace optfarm::storage::sqlite

#endif  // OPTFARM_STORAGE_SQLITE_READS_H_
