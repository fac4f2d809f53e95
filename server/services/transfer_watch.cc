#include "server/services/transfer_watch.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace optfarm::server {

TransferWatch::Transfer::~Transfer() {
  absl::MutexLock lock(&watch_.mutex_);
  watch_.transfers_.erase(state_);
}

void TransferWatch::Transfer::Moved(size_t bytes) {
  absl::MutexLock lock(&watch_.mutex_);
  state_->bytes += static_cast<int64_t>(bytes);
}

bool TransferWatch::Transfer::Stalled() const {
  absl::MutexLock lock(&watch_.mutex_);
  return state_->stalled;
}

absl::Status TransferWatch::CheckPlace(const Owner& owner) const {
  size_t of_projects = 0;
  size_t of_project = 0;
  size_t of_token = 0;
  for (const Transfer::State& one : transfers_) {
    if (one.owner.project.empty()) continue;
    ++of_projects;
    if (one.owner.project != owner.project) continue;
    ++of_project;
    of_token += one.owner.token_id == owner.token_id;
  }
  const auto refuse = [](size_t count, absl::string_view whose) {
    return absl::UnavailableError(
        absl::StrCat(count, " transfers ", whose,
                     " are under way, which is all that this server takes; "
                     "try again"));
  };
  if (transfers_.size() >= options_.max_transfers) {
    return refuse(transfers_.size(), "of all");
  }
  if (owner.project.empty()) return absl::OkStatus();
  if (of_projects >= options_.max_of_projects) {
    return refuse(of_projects, "of all projects");
  }
  if (of_project >= options_.max_of_project) {
    return refuse(of_project, "of this project");
  }
  if (of_token >= options_.max_of_token) {
    return refuse(of_token, "with this token");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TransferWatch::Transfer>> TransferWatch::Begin(
    const Owner& owner, std::function<void()> cancel, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  OPTFARM_RETURN_IF_ERROR(CheckPlace(owner));
  Transfer::State& state = transfers_.emplace_back();
  state.owner = owner;
  state.cancel = std::move(cancel);
  state.period_begin = now;
  return std::unique_ptr<Transfer>(
      new Transfer(*this, std::prev(transfers_.end())));
}

void TransferWatch::CancelStalled(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  for (Transfer::State& one : transfers_) {
    if (one.stalled || now - one.period_begin < options_.period) continue;
    if (one.bytes >= options_.least_bytes) {
      one.period_begin = now;
      one.bytes = 0;
      continue;
    }
    one.stalled = true;
    one.cancel();
  }
}

TransferWatch::Owner OwnerOf(const Caller& caller) {
  return {caller.Room(), caller.token_id};
}

absl::Status WhyBroken(const TransferWatch::Transfer& transfer) {
  if (transfer.Stalled()) {
    return absl::DeadlineExceededError(
        "too little came for a minute; go on from the committed offset");
  }
  return absl::CancelledError("the transfer was broken off");
}

}  // namespace optfarm::server
