// Which token each worker and agent calls with: a participant is its token's,
// and what it leases may be read with that token.

#ifndef OPTFARM_SERVER_ACCESS_HOLDER_TOKENS_H_
#define OPTFARM_SERVER_ACCESS_HOLDER_TOKENS_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/access/access_control.h"

namespace optfarm::server {

// THREADS: safe.
class HolderTokens {
 public:
  // Notes that a participant calls with the caller's token. One that has been
  // silent for an hour is forgotten.
  // ERRORS: PermissionDenied when it is another token's; ResourceExhausted when
  // the token has too many participants.
  absl::Status Note(const std::string& participant_id, const Caller& caller,
                    absl::Time now);

  // Those that called with the token lately.
  std::vector<std::string> ParticipantsOf(const std::string& token_id) const;

 private:
  // When a participant called last.
  using Participants = absl::flat_hash_map<std::string, absl::Time>;

  void ForgetSilent(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  // By token.
  absl::flat_hash_map<std::string, Participants> participants_
      ABSL_GUARDED_BY(mutex_);
  // By participant.
  absl::flat_hash_map<std::string, std::string> token_of_
      ABSL_GUARDED_BY(mutex_);
  absl::Time forgot_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_ACCESS_HOLDER_TOKENS_H_
