// The part of one schema step that SQL cannot do. It must go on doing what it
// did when it was released, so it shares no code with today's reads and writes.

#ifndef OPTFARM_STORAGE_POSTGRES_MIGRATE_ARTIFACTS_H_
#define OPTFARM_STORAGE_POSTGRES_MIGRATE_ARTIFACTS_H_

#include "absl/status/status.h"
#include "storage/postgres/connection.h"

namespace optfarm::storage {

// Step 7: counts for each project what its jobs have made so far, whose sizes
// are known inside details_proto of their tasks alone.
// REQUIRES: a transaction. ERRORS: DataLoss for a row that cannot be parsed;
// those of PostgresConnection.
absl::Status CountArtifactsOfVersion6(PostgresConnection& connection);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_MIGRATE_ARTIFACTS_H_
