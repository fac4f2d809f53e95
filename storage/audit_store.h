// AuditStore: who did what, and what came of it. Rows are added and never
// changed; the database itself refuses it. It has a database of its own, so
// that a restored backup of the farm's numbers does not forget who restored it.

#ifndef OPTFARM_STORAGE_AUDIT_STORE_H_
#define OPTFARM_STORAGE_AUDIT_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/metadata_store.h"

namespace optfarm::storage {

struct AuditRecord {
  // Grows with time; given by the store.
  int64_t number = 0;
  absl::Time time = absl::InfinitePast();
  // Name and id of the token; the id is empty for the server's own.
  std::string actor;
  std::string token_id;
  std::string project;
  // Where the call came from.
  std::string peer;
  // "JobService.SubmitJob".
  std::string method;
  // What it was done to: a job, a blob, a token, a device.
  std::string subject;
  // Name of the status code, "OK".
  std::string outcome;
  std::string message;
};

// All that are set must hold.
struct AuditFilter {
  std::optional<std::string> actor;
  std::optional<std::string> project;
  std::optional<std::string> method;
  absl::Time from_time = absl::InfinitePast();
  absl::Time until_time = absl::InfiniteFuture();
};

// THREADS: all methods are safe.
// ERRORS: as MetadataStore.
class AuditStore {
 public:
  virtual ~AuditStore() = default;

  // Survives the end of the process at once, and that of the machine after some
  // seconds.
  virtual absl::Status Append(const AuditRecord& record) = 0;
  // Newest first; `before` is a number.
  virtual absl::StatusOr<std::vector<AuditRecord>> List(
      const AuditFilter& filter, const PageRequest& page) = 0;
  // Lets go of what is older; of nothing that is younger than a day.
  virtual absl::Status Forget(absl::Time before) = 0;
};

// Opens or makes the database at `path`.
absl::StatusOr<std::unique_ptr<AuditStore>> OpenSqliteAuditStore(
    const std::string& path, absl::Time now);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_AUDIT_STORE_H_
