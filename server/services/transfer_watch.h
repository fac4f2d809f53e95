// Blob transfers under way: how many there may be, and which have stalled. A
// client that stops in mid-transfer must not keep a thread for ever.

#ifndef OPTFARM_SERVER_SERVICES_TRANSFER_WATCH_H_
#define OPTFARM_SERVER_SERVICES_TRANSFER_WATCH_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace optfarm::server {

// THREADS: safe.
class TransferWatch {
 public:
  struct Options {
    size_t max_transfers = 32;
    absl::Duration idle_limit = absl::Seconds(60);
  };

  // One transfer. OWNERSHIP: must not outlive its watch.
  class Transfer {
   public:
    ~Transfer();
    // Something moved.
    void Moved(absl::Time now);
    // It was cancelled because nothing moved.
    bool Stalled() const;

   private:
    friend class TransferWatch;
    struct State {
      std::function<void()> cancel;
      absl::Time last_moved;
      bool stalled = false;
    };
    Transfer(TransferWatch& watch, std::list<State>::iterator state)
        : watch_(watch), state_(state) {}
    TransferWatch& watch_;
    const std::list<State>::iterator state_;
  };

  explicit TransferWatch(Options options) : options_(options) {}

  // `cancel` makes the transfer's blocked call return; it is called with the
  // watch's lock held. ERRORS: Unavailable when there are too many transfers.
  absl::StatusOr<std::unique_ptr<Transfer>> Begin(std::function<void()> cancel,
                                                  absl::Time now);

  // Cancels transfers in which nothing moved for the idle limit.
  void CancelStalled(absl::Time now);

 private:
  const Options options_;
  absl::Mutex mutex_;
  std::list<Transfer::State> transfers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_TRANSFER_WATCH_H_
