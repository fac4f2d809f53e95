#include "server/services/leased_blobs.h"

#include <vector>

#include "base/status_macros.h"
#include "storage/blob_store.h"

namespace optfarm::server {

absl::Status LeasedBlobs::MayRead(const Caller& caller,
                                  const std::string& sha256, absl::Time now) {
  // Who may read everybody's jobs may read their files.
  if (caller.May(v1::Access::READ)) return absl::OkStatus();
  const std::vector<std::string> jobs =
      scheduler_.JobsLeasedBy(holders_.ParticipantsOf(caller.token_id));
  OPTFARM_ASSIGN_OR_RETURN(const bool has, store_.AnyJobHasBlob(jobs, sha256));
  if (has) return absl::OkStatus();
  if (now < all_called_) {
    return absl::UnavailableError(
        "the server has just started and does not know yet who holds what; "
        "try again when your next call has told it");
  }
  return storage::NoSuchBlob(sha256);
}

}  // namespace optfarm::server
