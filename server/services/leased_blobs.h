// Which files a worker or an agent may read: those of the jobs whose tasks its
// token has leased, and no others. What was made for one project is of no
// concern to a machine that works for another one.

#ifndef OPTFARM_SERVER_SERVICES_LEASED_BLOBS_H_
#define OPTFARM_SERVER_SERVICES_LEASED_BLOBS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/access/access_control.h"
#include "server/access/holder_tokens.h"
#include "server/scheduling/scheduler.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// THREADS: safe.
class LeasedBlobs {
 public:
  // OWNERSHIP: all outlive it.
  LeasedBlobs(const HolderTokens& holders, Scheduler& scheduler,
              storage::MetadataStore& store, absl::Time server_start,
              absl::Duration lease)
      : holders_(holders),
        scheduler_(scheduler),
        store_(store),
        all_called_(server_start + lease) {}

  // Whether `caller`, who works for the farm, may read the blob.
  // ERRORS: NotFound, as for a blob that there is not; Unavailable shortly
  // after a start, when holders of leases may still have to call.
  absl::Status MayRead(const Caller& caller, const std::string& sha256,
                       absl::Time now);

 private:
  const HolderTokens& holders_;
  Scheduler& scheduler_;
  storage::MetadataStore& store_;
  // Who holds a lease and has not called until then has lost it.
  const absl::Time all_called_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_LEASED_BLOBS_H_
