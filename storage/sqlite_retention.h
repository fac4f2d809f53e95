// Lets go of what a retention policy does not keep.

#ifndef OPTFARM_STORAGE_SQLITE_RETENTION_H_
#define OPTFARM_STORAGE_SQLITE_RETENTION_H_

#include "absl/status/statusor.h"
#include "storage/metadata_store.h"
#include "storage/sqlite_database.h"

namespace optfarm::storage::sqlite {

// MetadataStore::Prune. REQUIRES: a transaction is open.
absl::StatusOr<RetentionCounts> Prune(SqliteDatabase& db,
                                      const RetentionPolicy& policy);

}  // namespace optfarm::storage::sqlite

#endif  // OPTFARM_STORAGE_SQLITE_RETENTION_H_
