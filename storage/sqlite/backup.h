// A copy of a database that is in use, and what can be said of a copy.

#ifndef OPTFARM_STORAGE_SQLITE_BACKUP_H_
#define OPTFARM_STORAGE_SQLITE_BACKUP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optfarm::storage {

// Copies the database at `source`, as it is at one moment, to the new file
// `target`, durably. Others go on reading and writing meanwhile.
// ERRORS: AlreadyExists when `target` is there; ResourceExhausted when the disk
// is full; on any error `target` is not there afterwards.
absl::Status BackupSqlite(const std::string& source, const std::string& target);

struct TableRows {
  std::string table;
  int64_t rows = 0;
  friend bool operator==(const TableRows&, const TableRows&) = default;
};

// Reads all of the database at `path`, which nobody writes to, checks it and
// its references, and counts the rows of each table, by name.
// ERRORS: DataLoss when it is damaged; Unavailable when it cannot be read.
absl::StatusOr<std::vector<TableRows>> CheckSqliteFile(const std::string& path);

// The SHA-256 of every blob that the metadata at `path` name, in order.
// ERRORS: as CheckSqliteFile.
absl::StatusOr<std::vector<std::string>> BlobsOfSqliteMetadata(
    const std::string& path);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQLITE_BACKUP_H_
