// The part of one schema step that SQL cannot do. It must go on doing what it
// did when it was released, so it shares no code with today's reads and writes.

#ifndef OPTFARM_STORAGE_SQLITE_MIGRATE_MEASUREMENTS_H_
#define OPTFARM_STORAGE_SQLITE_MIGRATE_MEASUREMENTS_H_

#include "absl/status/status.h"
#include "storage/sqlite/database.h"

namespace optfarm::storage {

// Step 3: fills the columns of `measurements` that version 2 kept only inside
// measurement_proto.
// ERRORS: DataLoss for a row that cannot be parsed; those of SqliteDatabase.
absl::Status CompleteMeasurementsOfVersion2(SqliteDatabase& db);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQLITE_MIGRATE_MEASUREMENTS_H_
