// Blob transfers under way: how many there may be, of whom, and which are too
// slow. A client that stops in mid-transfer must not keep a thread for ever,
// nor the room that its upload was promised; and one token must not keep the
// places of all others.

#ifndef OPTFARM_SERVER_SERVICES_TRANSFER_WATCH_H_
#define OPTFARM_SERVER_SERVICES_TRANSFER_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/access/access_control.h"

namespace optfarm::server {

// THREADS: safe.
class TransferWatch {
 public:
  struct Options {
    // UNITS: transfers. All; those of projects' tokens together, so that the
    // rest is there for workers and agents; one project's; one token's.
    size_t max_transfers = 64;
    size_t max_of_projects = 48;
    size_t max_of_project = 24;
    size_t max_of_token = 16;
    // A transfer must move so many bytes in each of these periods.
    absl::Duration period = absl::Seconds(60);
    int64_t least_bytes = 64 << 10;
  };

  // Whose transfer it is.
  struct Owner {
    // Empty: of a worker, an agent or an administrator.
    std::string project;
    std::string token_id;
  };

  // One transfer. OWNERSHIP: must not outlive its watch.
  class Transfer {
   public:
    ~Transfer();
    // So much moved.
    void Moved(size_t bytes);
    // It was cancelled because too little moved.
    bool Stalled() const;

   private:
    friend class TransferWatch;
    struct State {
      Owner owner;
      std::function<void()> cancel;
      absl::Time period_begin;
      int64_t bytes = 0;
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
  absl::StatusOr<std::unique_ptr<Transfer>> Begin(const Owner& owner,
                                                  std::function<void()> cancel,
                                                  absl::Time now);

  // Cancels transfers that moved too little in the period that is over.
  void CancelStalled(absl::Time now);

 private:
  absl::Status CheckPlace(const Owner& owner) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  absl::Mutex mutex_;
  std::list<Transfer::State> transfers_ ABSL_GUARDED_BY(mutex_);
};

// Of the caller's transfers.
TransferWatch::Owner OwnerOf(const Caller& caller);

// Why a transfer whose call has ended is not whole.
absl::Status WhyBroken(const TransferWatch::Transfer& transfer);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_TRANSFER_WATCH_H_
