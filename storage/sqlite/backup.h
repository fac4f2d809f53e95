// A copy of a database that is in use.

#ifndef OPTFARM_STORAGE_SQLITE_BACKUP_H_
#define OPTFARM_STORAGE_SQLITE_BACKUP_H_

#include <string>

#include "absl/status/status.h"

namespace optfarm::storage {

// Copies the database at `source`, as it is at one moment, to the new file
// `target`, durably. Others go on reading and writing meanwhile.
// ERRORS: AlreadyExists when `target` is there; ResourceExhausted when the disk
// is full; on any error `target` is not there afterwards.
absl::Status BackupSqlite(const std::string& source, const std::string& target);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQLITE_BACKUP_H_
