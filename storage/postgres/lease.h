// The lease of a database: one server works on it. The row of the table leader
// says which, by an epoch that grows with each that takes over. A lease that is
// not renewed ends by the database's clock; the epoch, which every write looks
// at, shuts a server out that comes back late.

#ifndef OPTFARM_STORAGE_POSTGRES_LEASE_H_
#define OPTFARM_STORAGE_POSTGRES_LEASE_H_

#include <cstdint>
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
    // Where servers that stand by send calls; empty: none stand by.
    std::string address;
    absl::Duration length = absl::Seconds(10);
    // Lost as soon as it could not be renewed for its length, by a clock that
    // goes on while the process is paused; otherwise when another takes it.
    bool ends_by_itself = false;
    // See PostgresFence.
    std::function<void(const std::string&)> on_lost;
  };

  // Takes the lease. Waits for the end of one that nobody renews, as that of a
  // server that was killed. REQUIRES: the schema is there.
  // ERRORS: FailedPrecondition when another server holds and renews it; those
  // of PostgresConnection.
  static absl::StatusOr<std::unique_ptr<PostgresLease>> Take(Options options);
  // The same without waiting; null when another server holds it.
  static absl::StatusOr<std::unique_ptr<PostgresLease>> TryToTake(
      Options options);

  // Gives it back.
  ~PostgresLease();
  PostgresLease(const PostgresLease&) = delete;
  PostgresLease& operator=(const PostgresLease&) = delete;

  const std::shared_ptr<PostgresFence>& fence() const { return fence_; }
  // What calls that servers send on to this one prove themselves with: known to
  // who may read the row.
  const std::string& secret() const { return taken_.secret; }
  // The note that the last leader left.
  const std::string& found_note() const { return taken_.note; }
  // Leaves a note for the next leader; written with the next renewal.
  void LeaveNote(std::string note);

 private:
  struct Taken {
    int64_t epoch = 0;
    std::string secret;
    std::string note;
  };

  static absl::StatusOr<std::unique_ptr<PostgresLease>> TryOnce(
      Options& options, std::unique_ptr<PostgresConnection>& connection);
  PostgresLease(Options options, Taken taken,
                std::unique_ptr<PostgresConnection> connection);

  void KeepRenewing();
  absl::Status Renew();

  const Options options_;
  const Taken taken_;
  const std::shared_ptr<PostgresFence> fence_;
  // Used by the thread, and by others before and after it.
  std::unique_ptr<PostgresConnection> connection_;
  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::string note_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_LEASE_H_
