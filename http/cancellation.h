// Breaks off a request that is under way elsewhere, at once: whoever waits on
// its socket is woken by the socket's end.

#ifndef OPTFARM_HTTP_CANCELLATION_H_
#define OPTFARM_HTTP_CANCELLATION_H_

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"

namespace optfarm::http {

// THREADS: safe.
class Cancellation {
 public:
  // From now on sockets that are watched are shut down.
  void Cancel();
  bool cancelled() const;

  // Watches an open socket while it lives. OWNERSHIP: must be gone before the
  // socket is closed; a null Cancellation watches nothing.
  class Watch {
   public:
    Watch(Cancellation* cancellation, int socket);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Cancellation* const cancellation_;
    const int socket_;
  };

 private:
  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<int> sockets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_CANCELLATION_H_
