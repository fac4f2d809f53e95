// How a server is: its clock, and how its database and its files answer it.

#ifndef OPTFARM_SERVER_UPKEEP_SELF_CHECK_H_
#define OPTFARM_SERVER_UPKEEP_SELF_CHECK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "optfarm/v1/servers.pb.h"
#include "server/upkeep/blob_engine.h"
#include "storage/postgres/connection.h"
#include "storage/s3/s3_client.h"

namespace optfarm::server {

struct SelfCheckOptions {
  // As ServerOptions'.
  std::string database;
  BlobEngineOptions blobs;
  // Of files that are in no bucket.
  std::string blob_folder;
  // The smallest question to a database that is not PostgreSQL.
  std::function<absl::Status()> ask_database;
  // OWNERSHIP: outlives the check.
  Clock* clock = RealClock();
};

// Asks by connections of its own, which nothing else waits for.
// THREADS: safe. One asks at a time, and those who wait get what it found.
class SelfCheck {
 public:
  explicit SelfCheck(SelfCheckOptions options) : options_(std::move(options)) {}

  // Everything but who leads; at most a second old. Waits for what does not
  // answer: some ten seconds.
  v1::ServerState Look();

 private:
  void LookAtDatabase(v1::ServerState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AskPostgres(v1::ServerState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AskBlobs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SelfCheckOptions options_;
  absl::Mutex mutex_;
  std::unique_ptr<storage::PostgresConnection> connection_
      ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<storage::S3Client> bucket_ ABSL_GUARDED_BY(mutex_);
  v1::ServerState last_ ABSL_GUARDED_BY(mutex_);
  absl::Time looked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // Of its clock.
  absl::Duration database_ahead_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_SELF_CHECK_H_
