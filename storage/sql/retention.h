// Lets go of what a retention policy does not keep.

#ifndef OPTFARM_STORAGE_SQL_RETENTION_H_
#define OPTFARM_STORAGE_SQL_RETENTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "storage/metadata_store.h"
#include "storage/sql/database.h"

namespace optfarm::storage::sql {

// A job among those that have ended, in the order of their ends.
struct EndedJob {
  // UNITS: microseconds since 1970.
  int64_t end_time = 0;
  int64_t number = 0;
};

// MetadataStore::Prune. The jobs up to `logs_gone` are not looked at for logs;
// it is moved on to where that has been done, which holds when the transaction
// is committed. REQUIRES: a transaction is open.
absl::StatusOr<RetentionCounts> Prune(SqlDatabase& db,
                                      const RetentionPolicy& policy,
                                      EndedJob& logs_gone);

}  // namespace optfarm::storage::sql

#endif  // OPTFARM_STORAGE_SQL_RETENTION_H_
