#include "server/access/call_room.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/access/project_limits.h"

namespace optfarm::server {
namespace {

// When to try again: requests come and go within moments.
constexpr absl::Duration kMoment = absl::Seconds(1);

}  // namespace

CallRoom::Stay::~Stay() {
  absl::MutexLock lock(&room_.mutex_);
  const auto used = room_.used_.try_emplace(state_->project, Used()).first;
  used->second.bytes -= state_->bytes;
  room_.bytes_ -= state_->bytes;
  if (state_->threaded) --used->second.calls;
  if (used->second.calls == 0 && used->second.bytes == 0) {
    room_.used_.erase(used);
  }
  (state_->waiting ? room_.waiting_ : room_.stays_).erase(state_);
}

absl::Status CallRoom::Stay::Take(size_t bytes) {
  absl::MutexLock lock(&room_.mutex_);
  return room_.TakeLocked(*state_, bytes);
}

void CallRoom::Stay::Arrived() {
  absl::MutexLock lock(&room_.mutex_);
  if (!state_->waiting) return;
  state_->waiting = false;
  room_.stays_.splice(room_.stays_.end(), room_.waiting_, state_);
}

bool CallRoom::Stay::TooSlow() const {
  absl::MutexLock lock(&room_.mutex_);
  return state_->too_slow;
}

std::unique_ptr<CallRoom::Stay> CallRoom::Add(Stay::State state) {
  std::list<Stay::State>& list = state.waiting ? waiting_ : stays_;
  list.push_back(std::move(state));
  return std::unique_ptr<Stay>(new Stay(*this, std::prev(list.end())));
}

absl::Status CallRoom::TakeLocked(Stay::State& state, size_t bytes) {
  const auto found = used_.find(state.project);
  const Used used = found == used_.end() ? Used() : found->second;
  if (bytes > options_.max_bytes - bytes_) {
    return ExhaustedFor(
        absl::StrCat("the requests that are served now take ", bytes_, " of ",
                     options_.max_bytes, " bytes of memory"),
        kMoment);
  }
  if (bytes > options_.max_project_bytes - used.bytes) {
    return ExhaustedFor(
        absl::StrCat("the requests of the project '", state.project,
                     "' that are served now take ", used.bytes, " of ",
                     options_.max_project_bytes, " bytes of memory"),
        kMoment);
  }
  state.bytes += bytes;
  used_[state.project].bytes += bytes;
  bytes_ += bytes;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CallRoom::Stay>> CallRoom::Enter(
    const std::string& project, Served served, std::function<void()> cancel,
    absl::Time now) {
  absl::MutexLock lock(&mutex_);
  Used& used = used_[project];
  const bool threaded = served == Served::kByThread;
  if (threaded && used.calls >= options_.max_calls) {
    return ExhaustedFor(
        absl::StrCat("the project '", project, "' has ", used.calls,
                     " calls under way, which is all that one may have"),
        kMoment);
  }
  if (threaded) ++used.calls;
  Stay::State state;
  state.project = project;
  state.cancel = std::move(cancel);
  state.since = now;
  state.threaded = threaded;
  return Add(std::move(state));
}

absl::StatusOr<std::unique_ptr<CallRoom::Stay>> CallRoom::Reserve(
    const std::string& project, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  Stay::State state;
  state.project = project;
  state.waiting = false;
  OPTFARM_RETURN_IF_ERROR(TakeLocked(state, bytes));
  return Add(std::move(state));
}

void CallRoom::CancelSlow(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto state = next++;
    if (now - state->since < options_.message_time) continue;
    state->waiting = false;
    stays_.splice(stays_.end(), waiting_, state);
    state->too_slow = true;
    state->cancel();
  }
}

}  // namespace optfarm::server
