// A whole farm from one engine to another: all records, and the blobs that
// they name, with the server stopped.

#ifndef OPTFARM_SERVER_UPKEEP_MIGRATION_H_
#define OPTFARM_SERVER_UPKEEP_MIGRATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/upkeep/blob_engine.h"

namespace optfarm::server {

struct MigrationOptions {
  // postgresql://..., or sqlite:PATH of a server's data folder or of the
  // database in it.
  std::string from;
  std::string to;
  // Where the blobs are and where they go to, with what is said of the bucket;
  // `to_blobs.blobs` empty: they stay where they are.
  BlobEngineOptions from_blobs;
  BlobEngineOptions to_blobs;
  // The data folder of the server that will run, for the index of a bucket, and
  // of small databases when `from` or `to` is a file. Empty: the folder of the
  // SQLite side.
  std::string data_dir;
  BlobLimits limits;
};

struct MigratedTable {
  std::string name;
  int64_t rows = 0;
  // Of these, copied by this run.
  int64_t copied = 0;
  // Of the values of all rows, the same on both sides.
  std::string sha256;
};

struct MigrationReport {
  std::vector<MigratedTable> tables;
  // Named by the records and found at the source.
  int64_t blobs = 0;
  int64_t blob_bytes = 0;
  int64_t copied_blobs = 0;
  // Named, and not there any more: evicted.
  int64_t missing_blobs = 0;
};

// Copies, compares all rows of both sides, and only then lets servers open the
// target. When it ends in the middle, however it ends, the same call goes on
// from there.
// ERRORS: FailedPrecondition when a server uses one of the sides, or the target
// has records that no earlier call put there; DataLoss when the sides differ at
// the end; InvalidArgument for sides that are none; those of the engines.
absl::StatusOr<MigrationReport> Migrate(const MigrationOptions& options,
                                        absl::Time now);

// The report as a table for people.
std::string ToText(const MigrationReport& report);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_MIGRATION_H_
