#include "rpc/retry.h"

#include <algorithm>
#include <random>

namespace optfarm::rpc {
namespace {

// Pauses are slept in slices, so that a cancellation is noticed soon.
constexpr absl::Duration kSlice = absl::Milliseconds(100);

}  // namespace

absl::Duration Backoff::Next() {
  std::uniform_real_distribution<double> part(1.0 - options_.jitter, 1.0);
  const absl::Duration pause = nominal_ * part(random_);
  nominal_ = std::min(nominal_ * options_.factor, options_.longest);
  return pause;
}

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsAborted(status) || absl::IsCancelled(status);
}

absl::Status Retry(const RetryOptions& options,
                   absl::FunctionRef<Attempt()> attempt) {
  const auto cancelled = [&] {
    return options.cancelled != nullptr && options.cancelled();
  };
  Backoff backoff(options.backoff,
                  options.seed != 0 ? options.seed : std::random_device()());
  absl::Time begin = options.clock->Now();
  for (int count = 1;; ++count) {
    if (cancelled()) return absl::CancelledError("cancelled by the caller");
    Attempt result = attempt();
    const bool again = IsTransient(result.status) ||
                       (options.also && options.also(result.status));
    if (result.status.ok() || !again) return result.status;
    if (result.progress) {
      count = 1;
      begin = options.clock->Now();
      backoff.Reset();
    }
    if (count >= options.max_attempts) return result.status;
    const absl::Time next = options.clock->Now() + backoff.Next();
    if (next - begin >= options.give_up_after) return result.status;
    while (options.clock->Now() < next) {
      if (cancelled()) return absl::CancelledError("cancelled by the caller");
      options.clock->Sleep(std::min(kSlice, next - options.clock->Now()));
    }
  }
}

}  // namespace optfarm::rpc
