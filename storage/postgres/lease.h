// The lease of a database: one server works on it. The row of the table leader
// says which, by an epoch that grows with each that takes over. A lease that is
// not renewed ends by the database's clock; the epoch, which every write looks
// at, shuts a server out that comes back late.

#ifndef OPTFARM_STORAGE_POSTGRES_LEASE_H_
#define OPTFARM_STORAGE_POSTGRES_LEASE_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/postgres/connection.h"
#include "storage/postgres/fence.h"

namespace optfarm::storage {

// THREADS: safe.
class PostgresLease {
 public:
  struct Options {
    // As PostgresConnection takes it.
    std::string uri;
    // Whoever reads the row sees this: machine and process.
    std::string holder;
    absl::Duration length = absl::Seconds(10);
    // See PostgresFence.
    std::function<void(const std::string&)> on_lost;
  };

  // Takes the lease. Waits for the end of one that nobody renews, as that of a
  // server that was killed. REQUIRES: the schema is there.
  // ERRORS: FailedPrecondition when another server holds and renews it; those
  // of PostgresConnection.
  static absl::StatusOr<std::unique_ptr<PostgresLease>> Take(Options options);

  // Gives it back.
  ~PostgresLease();
  PostgresLease(const PostgresLease&) = delete;
  PostgresLease& operator=(const PostgresLease&) = delete;

  const std::shared_ptr<PostgresFence>& fence() const { return fence_; }

 private:
  PostgresLease(Options options, int64_t epoch,
                std::unique_ptr<PostgresConnection> connection);

  void KeepRenewing();
  void Renew();

  const Options options_;
  const std::shared_ptr<PostgresFence> fence_;
  // Used by the thread, and by others before and after it.
  std::unique_ptr<PostgresConnection> connection_;
  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_LEASE_H_
