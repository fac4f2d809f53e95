// The reading half of the metadata store: one function a question, with
// the meaning and the errors of the MetadataStore method of the same name.

#ifndef OPTFARM_STORAGE_SQL_READS_H_
#define OPTFARM_STORAGE_SQL_READS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/metadata_store.h"
#include "storage/sql/database.h"

namespace optfarm::storage::sql {

absl::StatusOr<std::optional<RequestMatch>> FindClientRequest(
    SqlDatabase& db, const std::string& client_request_id);
absl::StatusOr<StoredJob> GetJob(SqlDatabase& db, const std::string& job_id);
absl::StatusOr<TaskRecord> GetTask(SqlDatabase& db, const std::string& task_id);
absl::StatusOr<std::vector<StoredJob>> ListJobs(SqlDatabase& db,
                                                const JobFilter& filter,
                                                const PageRequest& page);
absl::StatusOr<std::vector<StoredJob>> LoadLiveJobs(SqlDatabase& db);
absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(SqlDatabase& db,
                                                     const std::string& job_id,
                                                     int64_t after_sequence,
                                                     int limit, bool with_logs);
absl::StatusOr<v1::Report> GetReport(SqlDatabase& db,
                                     const std::string& job_id);
absl::StatusOr<std::optional<std::string>> FindAction(
    SqlDatabase& db, const std::string& action_digest,
    const std::string& tool_version);
absl::StatusOr<std::vector<DeviceRecord>> ListDevices(SqlDatabase& db);
absl::StatusOr<std::vector<DeviceStateRecord>> ListDeviceStates(
    SqlDatabase& db, const std::string& device, const PageRequest& page);
absl::StatusOr<std::vector<DeviceStateRecord>> LatestDeviceStates(
    SqlDatabase& db);
absl::StatusOr<std::vector<std::string>> ListProjects(SqlDatabase& db,
                                                      const std::string& after,
                                                      int limit);
absl::StatusOr<std::vector<v1::Recipe>> ListRecipes(SqlDatabase& db);
absl::StatusOr<bool> AnyJobHasBlob(SqlDatabase& db,
                                   absl::Span<const std::string> job_ids,
                                   const std::string& sha256);
absl::StatusOr<bool> ProjectHasBlob(SqlDatabase& db, const std::string& project,
                                    const std::string& sha256);
absl::StatusOr<ProjectUsage> GetProjectUsage(SqlDatabase& db,
                                             const std::string& project,
                                             absl::Time since);
absl::StatusOr<absl::flat_hash_set<std::string>> LiveBlobs(SqlDatabase& db);

}  // namespace optfarm::storage::sql

#endif  // OPTFARM_STORAGE_SQL_READS_H_
