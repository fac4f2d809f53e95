// MetadataStore in one SQLite file: WAL, synchronous=FULL.

#ifndef OPTFARM_STORAGE_SQLITE_METADATA_STORE_H_
#define OPTFARM_STORAGE_SQLITE_METADATA_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/sql/metadata_store.h"

namespace optfarm::storage {

// Opens or makes the database at `path`, checks its integrity, brings its
// schema up to date and reads the numbers of its results into memory, of which
// they take at most `results_bytes`. `now` is stamped on schema steps. ERRORS:
// DataLoss when the file is damaged or no database; FailedPrecondition when a
// newer server wrote it.
absl::StatusOr<std::unique_ptr<MetadataStore>> OpenSqliteMetadataStore(
    const std::string& path, absl::Time now,
    int64_t results_bytes = kResultsBytes);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQLITE_METADATA_STORE_H_
