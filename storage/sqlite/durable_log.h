// What a failed sync leaves behind in a write-ahead log.

#ifndef OPTFARM_STORAGE_SQLITE_DURABLE_LOG_H_
#define OPTFARM_STORAGE_SQLITE_DURABLE_LOG_H_

#include <string>

#include "absl/status/status.h"

namespace optfarm::storage {

// Writes the log of the database at `path` over itself and syncs it. After a
// sync has failed, the kernel keeps pages that look written and are not on the
// disk; a server that was killed then leaves them to the next one, whose syncs
// succeed because nothing is left to write. If it moved such a log into the
// database, and the pages were dropped later, the database would be damaged.
// Does nothing while any connection, of any process, has the database open.
// ERRORS: Unavailable; ResourceExhausted when the disk is full.
absl::Status MakeLogDurable(const std::string& path);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQLITE_DURABLE_LOG_H_
