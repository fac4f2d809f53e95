// A backup of everything a server keeps, except the bytes of blobs.
//
//   FOLDER/NAME.db           jobs, results, devices
//   FOLDER/NAME.tokens.db    tokens; likewise webhooks, audit and tunes
//   FOLDER/NAME.uptime       when the server ran, for deadlines
//   FOLDER/NAME.manifest     size, SHA-256 and rows of each, and the blobs that
//                            they name. Written last: without it there is no
//                            backup
//
// The manifest is text, one fact a line, and ends with its own SHA-256.

#ifndef OPTFARM_SERVER_UPKEEP_SERVER_BACKUP_H_
#define OPTFARM_SERVER_UPKEEP_SERVER_BACKUP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/upkeep/data_dir.h"
#include "storage/blob_store.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// Copies all databases while they are in use, each as it is at one moment, the
// metadata first, and reads every copy to see that it is whole.
// ERRORS: AlreadyExists when there is a backup of that name; FailedPrecondition
// when the metadata are not SQLite's; DataLoss when a copy is damaged. On any
// error nothing of the backup is left.
absl::Status WriteServerBackup(storage::MetadataStore& store,
                               storage::BlobStore& blobs,
                               const DataDir& data_dir, const std::string& name,
                               absl::Time now);

struct RestoredBackup {
  absl::Time time;
  // Of the blobs that the backup names and that its server had.
  int64_t blobs = 0;
  // Of them, those that are not in `blobs`.
  int64_t missing_blobs = 0;
};

// Checks the backup that `manifest` is of and copies it into a data folder
// which has no databases.
// ERRORS: FailedPrecondition when the folder has databases; DataLoss when the
// backup is incomplete or changed; on any error no database is left there.
absl::StatusOr<RestoredBackup> RestoreServerBackup(const std::string& manifest,
                                                   const DataDir& data_dir,
                                                   storage::BlobStore& blobs);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_SERVER_BACKUP_H_
