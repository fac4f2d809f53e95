// What goes into the audit log, and how much of it: calls of methods whose
// option says so, and refused calls, of which a flood is counted instead of
// kept.

#ifndef OPTFARM_SERVER_ACCESS_AUDIT_LOG_H_
#define OPTFARM_SERVER_ACCESS_AUDIT_LOG_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/audit_store.h"

namespace optfarm::server {

// THREADS: safe. OWNERSHIP: the store outlives it.
class AuditLog {
 public:
  explicit AuditLog(storage::AuditStore& store) : store_(store) {}

  // Keeps the record. When the store refuses it, the log of the program says
  // so; the call is answered all the same.
  void Add(const storage::AuditRecord& record);

  // As Add, up to a number of them a second; then they are counted, and the
  // count is one record.
  void AddRefusal(const storage::AuditRecord& record);

 private:
  storage::AuditStore& store_;
  absl::Mutex mutex_;
  // Of the current second.
  absl::Time second_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_AUDIT_LOG_H_
