// Which blobs count for which project, and which nobody has any more: one
// function for each MetadataStore method of the same name, with its meaning and
// errors.

#ifndef OPTFARM_STORAGE_SQL_BLOB_OWNERS_H_
#define OPTFARM_STORAGE_SQL_BLOB_OWNERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/metadata_store.h"
#include "storage/sql/database.h"

namespace optfarm::storage::sql {

absl::StatusOr<std::vector<ProjectBlobRecord>> ListProjectBlobs(
    SqlDatabase& db, const std::string& project, const BlobPageRequest& page);
// REQUIRES: a writing transaction, for this and all below but ListRemovedBlobs.
absl::StatusOr<BlobRemoval> RemoveProjectBlob(SqlDatabase& db,
                                              const std::string& project,
                                              const std::string& sha256);
absl::Status GiveBackBlobs(SqlDatabase& db,
                           absl::Span<const std::string> sha256);
absl::StatusOr<std::vector<RemovedBlob>> ListRemovedBlobs(
    SqlDatabase& db, const std::string& after, int limit);
absl::Status ForgetRemovedBlobs(SqlDatabase& db,
                                absl::Span<const std::string> sha256);

// What a job made that no other job of its project refers to no longer counts
// for the project. For a job that is about to be deleted.
absl::Status GiveBackWhatJobMade(SqlDatabase& db, const std::string& job_id);

}  // namespace optfarm::storage::sql

#endif  // OPTFARM_STORAGE_SQL_BLOB_OWNERS_H_
