// What keeps a server that lost its lease of the database from writing.

#ifndef OPTFARM_STORAGE_POSTGRES_FENCE_H_
#define OPTFARM_STORAGE_POSTGRES_FENCE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optfarm::storage {

// THREADS: safe.
class PostgresFence {
 public:
  // `on_lost` is called once, from any thread, with locks held: it must not
  // call back. It says why the server can write no more.
  PostgresFence(int64_t epoch, std::function<void(const std::string&)> on_lost)
      : epoch_(epoch), on_lost_(std::move(on_lost)) {}

  // That of the lease that the server took.
  int64_t epoch() const { return epoch_; }
  bool is_lost() const { return lost_; }

  // Nothing is written from now on. Unavailable: another server may take what
  // this one refuses.
  absl::Status Lose(const std::string& why) {
    if (!lost_.exchange(true) && on_lost_) on_lost_(why);
    return absl::UnavailableError(
        absl::StrCat("this server no longer writes to the database: ", why));
  }

 private:
  const int64_t epoch_;
  const std::function<void(const std::string&)> on_lost_;
  std::atomic<bool> lost_{false};
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_FENCE_H_
