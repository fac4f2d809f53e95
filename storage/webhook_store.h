// WebhookStore: who wants to be told of the end of which job, and how telling
// them went. In a database of its own: losing it loses messages and no jobs.

#ifndef OPTFARM_STORAGE_WEBHOOK_STORE_H_
#define OPTFARM_STORAGE_WEBHOOK_STORE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace optfarm::storage {

struct WebhookRecord {
  std::string job_id;
  std::string url;
  // Deliveries that failed so far.
  int failures = 0;
  // Not tried before this.
  absl::Time next_time = absl::InfinitePast();
};

// THREADS: all methods are safe.
// ERRORS: as MetadataStore.
class WebhookStore {
 public:
  virtual ~WebhookStore() = default;

  // ENSURES: on OK it is durable. A job that is known already is left alone.
  virtual absl::Status Add(const WebhookRecord& webhook, absl::Time now) = 0;
  // Sets failures and next time.
  virtual absl::Status Postpone(const WebhookRecord& webhook,
                                absl::string_view error) = 0;
  // It was delivered, or given up; `outcome` says which.
  virtual absl::Status Close(const std::string& job_id,
                             absl::string_view outcome, absl::Time now) = 0;
  // Those that are not closed, oldest first.
  virtual absl::StatusOr<std::vector<WebhookRecord>> ListOpen() = 0;
  // Forgets those closed before this.
  virtual absl::Status Forget(absl::Time before) = 0;
};

// Opens or makes the database at `path`.
absl::StatusOr<std::unique_ptr<WebhookStore>> OpenSqliteWebhookStore(
    const std::string& path, absl::Time now);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_WEBHOOK_STORE_H_
