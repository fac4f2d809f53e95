// The writing half of the metadata store: a WriteBatch as SQL.

#ifndef OPTFARM_STORAGE_SQL_WRITES_H_
#define OPTFARM_STORAGE_SQL_WRITES_H_

#include "absl/status/status.h"
#include "storage/metadata_store.h"
#include "storage/sql/database.h"
#include "storage/sql/result_places.h"

namespace optfarm::storage {

// Writes the whole batch. Errors are those of MetadataStore::Commit; some are
// told when the transaction is committed.
// REQUIRES: a writing transaction is open on `db`; the caller commits it on OK
// and rolls it back otherwise.
absl::Status WriteBatchTo(SqlDatabase& db, const WriteBatch& batch,
                          ResultPlaces& places);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_WRITES_H_
