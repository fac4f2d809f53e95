#include "server/access/open_calls.h"

#include <utility>

namespace optfarm::server {

OpenCalls::Open::~Open() {
  absl::MutexLock lock(&calls_.mutex_);
  calls_.open_.erase(state_);
}

std::unique_ptr<OpenCalls::Open> OpenCalls::Begin(
    const std::string& token_id, absl::Time expire_time,
    std::function<void()> cancel) {
  if (token_id.empty()) return nullptr;
  absl::MutexLock lock(&mutex_);
  if (ended_.contains(token_id)) cancel();
  open_.push_front({token_id, expire_time, std::move(cancel)});
  return std::unique_ptr<Open>(new Open(*this, open_.begin()));
}

void OpenCalls::EndThoseOf(const std::string& token_id) {
  absl::MutexLock lock(&mutex_);
  ended_.insert(token_id);
  for (const Open::State& state : open_) {
    if (state.token_id == token_id) state.cancel();
  }
}

void OpenCalls::EndExpired(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  for (Open::State& state : open_) {
    if (now < state.expire_time) continue;
    state.expire_time = absl::InfiniteFuture();
    state.cancel();
  }
}

}  // namespace optfarm::server
