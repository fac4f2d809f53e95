#include "server/forwarding/download_grant.h"

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"

namespace optfarm::server {
namespace {

// The leader's word counts for so long: what it takes back is not sent later
// than this, whatever becomes of the connection.
constexpr std::chrono::milliseconds kWordCounts(1000);
constexpr std::chrono::milliseconds kAskAgain(500);
// For a leader that does not answer.
constexpr absl::Duration kPatience = absl::Seconds(5);
// For whoever has the grant to find out that it has ended.
constexpr absl::Duration kNotice = absl::Milliseconds(500);

}  // namespace

DownloadGrant::DownloadGrant(std::unique_ptr<LeaderLanes::Place> place,
                             std::function<void()> cancel)
    : place_(std::move(place)),
      cancel_(std::move(cancel)),
      stub_(servers::v1::LeaderService::NewStub(place_->channel())),
      heard_(Clock::now()),
      said_(heard_) {}

absl::StatusOr<std::unique_ptr<DownloadGrant>> DownloadGrant::Ask(
    std::unique_ptr<LeaderLanes::Place> place,
    const v1::DownloadRequest& request, std::function<void()> cancel) {
  std::unique_ptr<DownloadGrant> grant(
      new DownloadGrant(std::move(place), std::move(cancel)));
  grant->stream_ = grant->stub_->GrantDownload(&grant->place_->context());
  servers::v1::GrantDownloadRequest word;
  *word.mutable_download() = request;
  if (!grant->stream_->Write(word) || !grant->stream_->Read(&grant->answer_)) {
    OPTFARM_RETURN_IF_ERROR(grant->Finish());
    return absl::InternalError("the leader granted a download without a word");
  }
  grant->listener_ = std::thread([&one = *grant] { one.Listen(); });
  return grant;
}

DownloadGrant::~DownloadGrant() {
  if (!finished_) Finish().IgnoreError();
}

void DownloadGrant::Listen() {
  v1::DownloadResponse word;
  while (stream_->Read(&word)) {
    absl::MutexLock lock(&mutex_);
    heard_ = said_;
    asking_ = false;
  }
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    if (mutex_.AwaitWithTimeout(absl::Condition(&known_), kNotice)) return;
  }
  // It waits for a caller who reads slowly.
  cancel_();
}

void DownloadGrant::Say() {
  servers::v1::GrantDownloadRequest word;
  word.set_moved_bytes(std::exchange(unsaid_bytes_, 0));
  {
    absl::MutexLock lock(&mutex_);
    asking_ = true;
    said_ = Clock::now();
  }
  // When it fails, the call has ended.
  stream_->Write(word);
}

bool DownloadGrant::Holds() {
  const absl::Time deadline = absl::Now() + kPatience;
  while (true) {
    bool ask = false;
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return false;
      if (Clock::now() - heard_ < kAskAgain) return true;
      ask = !asking_;
    }
    if (ask) Say();
    absl::MutexLock lock(&mutex_);
    if (!ended_ && Clock::now() - heard_ < kWordCounts) return true;
    const auto answered = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return ended_ || !asking_;
    };
    if (!mutex_.AwaitWithDeadline(absl::Condition(&answered), deadline)) {
      return false;
    }
  }
}

absl::Status DownloadGrant::Finish() {
  finished_ = true;
  bool silent = false;
  {
    absl::MutexLock lock(&mutex_);
    known_ = true;
    silent = asking_ && Clock::now() - said_ > kWordCounts;
  }
  if (silent) place_->context().TryCancel();
  servers::v1::GrantDownloadRequest word;
  word.set_moved_bytes(std::exchange(unsaid_bytes_, 0));
  stream_->WriteLast(word, grpc::WriteOptions());
  if (listener_.joinable()) listener_.join();
  const absl::Status status = place_->Outcome(stream_->Finish());
  if (!silent) return status;
  return absl::UnavailableError(
      "the server that leads this farm does not answer: try again");
}

}  // namespace optfarm::server
