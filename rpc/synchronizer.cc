#include "rpc/synchronizer.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "rpc/proto_time.h"
#include "rpc/status.h"

namespace optfarm::rpc {
namespace {

// How much longer than the long poll an answer may take.
constexpr absl::Duration kCallSlack = absl::Seconds(15);
// How long held tasks are offered back to a server that does not answer.
constexpr absl::Duration kAbsentServerGrace = absl::Seconds(3);
// Least time between two calls when the server answers at once with nothing.
constexpr absl::Duration kLeastPause = absl::Milliseconds(100);

// What a peer says is bounded: a day is as good as for ever.
absl::Duration BoundedDuration(const google::protobuf::Duration& proto) {
  return std::clamp(FromProtoDuration(proto), absl::ZeroDuration(),
                    absl::Hours(24));
}

}  // namespace

std::string NewParticipantId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&id, absl::Hex(random(), absl::kZeroPad8));
  }
  return id;
}

std::string CleanName(absl::string_view name) {
  std::string clean(name.substr(0, 64));
  for (char& c : clean) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_') c = '-';
  }
  if (clean.empty() || !absl::ascii_isalnum(clean[0])) clean.insert(0, 1, 'x');
  return clean.substr(0, 64);
}

Synchronizer::Synchronizer(WorkStub* stub, SynchronizerOptions options)
    : stub_(stub),
      options_(std::move(options)),
      held_([this] { Wake(); }),
      backoff_(options_.backoff, std::random_device()()) {}

absl::Status Synchronizer::Run() {
  Clock& clock = *options_.clock;
  absl::Time give_up = absl::InfiniteFuture();
  while (true) {
    if (options_.on_cycle) options_.on_cycle();
    NoteIdleness();
    if (IsShuttingDown()) {
      // A server that is not there will not take anything back soon.
      give_up = std::min(
          give_up, clock.Now() + std::min(options_.shutdown_grace,
                                          connected_ ? options_.shutdown_grace
                                                     : kAbsentServerGrace));
      // A lease may have come in between Shutdown and now.
      held_.RequestRelease();
      if (held_.empty() || clock.Now() >= give_up) break;
    }
    v1::SynchronizeResponse response;
    const absl::Status status = Call(&response);
    if (status.ok() || absl::IsCancelled(status)) continue;
    if (!answered_ && !IsTransient(status)) return status;
    NoteFailure(status);
    absl::Duration pause = std::min(backoff_.Next(), give_up - clock.Now());
    // A server that comes back gives each lease one more term to be renewed.
    if (!held_.empty()) {
      pause = std::min(pause, std::max(lease_ / 5, kLeastPause));
    }
    Pause(pause, /*for_news=*/false);
  }
  SayGoodbye();
  held_.DropAll();
  return absl::OkStatus();
}

v1::SynchronizeRequest Synchronizer::BuildRequest(absl::Duration* long_poll) {
  v1::SynchronizeRequest request = options_.identity;
  if (connected_) request.clear_builtin_recipes();
  const bool closing = IsShuttingDown();
  held_.Fill(&request);
  if (options_.free_slots != nullptr && !closing && !drain_) {
    request.set_free_slots(std::max(0, options_.free_slots()));
  }
  if (options_.devices != nullptr) {
    for (v1::DeviceStatus& device : options_.devices()) {
      if (closing) {
        device.set_ready(false);
        device.set_reason("its agent shuts down");
      }
      *request.add_devices() = std::move(device);
    }
  }
  // The first answer should come at once: it is what makes us ready.
  const bool at_once = !connected_ || (closing && request.held().empty());
  *long_poll = at_once                  ? absl::ZeroDuration()
               : request.held().empty() ? IdlePoll()
                                        : HeldPoll();
  *request.mutable_long_poll() = ToProtoDuration(*long_poll);
  return request;
}

absl::Status Synchronizer::Call(v1::SynchronizeResponse* response) {
  grpc::ClientContext context;
  {
    absl::MutexLock lock(&mutex_);
    // News from before this moment goes into the request built below.
    news_ = false;
    call_ = &context;
  }
  absl::Duration long_poll;
  const v1::SynchronizeRequest request = BuildRequest(&long_poll);
  const absl::Time begin = options_.clock->Now();
  context.set_deadline(absl::ToChronoTime(
      absl::Now() + std::max(long_poll, server_long_poll_) + kCallSlack));
  const absl::Status status =
      FromGrpc(stub_->Synchronize(&context, request, response));
  bool interrupted;
  {
    absl::MutexLock lock(&mutex_);
    call_ = nullptr;
    interrupted = news_;
  }
  if (status.ok()) {
    TakeAnswer(request, *response);
    const absl::Duration wish = BoundedDuration(response->call_again_after());
    const bool idle = options_.clock->Now() - begin < kLeastPause &&
                      response->new_tasks().empty() && wish < kLeastPause;
    const absl::Duration longest = held_.empty() ? IdlePoll() : HeldPoll();
    Pause(idle ? kLeastPause : std::min(wish, longest), /*for_news=*/true);
    return status;
  }
  if (absl::IsCancelled(status) && !interrupted) {
    return absl::UnavailableError(status.message());
  }
  // A newer call of ours made the server end this one.
  if (absl::IsAborted(status) && interrupted) return absl::CancelledError("");
  return status;
}

void Synchronizer::TakeAnswer(const v1::SynchronizeRequest& request,
                              const v1::SynchronizeResponse& response) {
  if (std::exchange(complained_, false)) LogInfo("the server answers");
  connected_ = true;
  backoff_.Reset();
  server_long_poll_ =
      std::min(BoundedDuration(response.long_poll()), absl::Minutes(2));
  if (response.drain() != drain_) {
    drain_ = response.drain();
    LogInfo(drain_ ? "the server wants us to take no more work"
                   : "the server wants us to take work again");
  }
  NoteLeases(response);
  if (!std::exchange(answered_, true) && options_.on_ready) options_.on_ready();
  for (const auto& task : held_.Apply(request, response)) {
    options_.on_lease(task);
  }
}

void Synchronizer::NoteLeases(const v1::SynchronizeResponse& response) {
  for (const v1::LeasedTask& lease : response.new_tasks()) {
    if (lease.has_lease_duration())
      lease_ = BoundedDuration(lease.lease_duration());
  }
  for (const v1::TaskVerdict& verdict : response.verdicts()) {
    if (verdict.has_lease_remaining()) {
      lease_ = BoundedDuration(verdict.lease_remaining());
    }
  }
}

void Synchronizer::NoteIdleness() {
  const absl::Time now = options_.clock->Now();
  // A server that is away may have work when it is back.
  if (!connected_ || !held_.empty()) idle_since_ = now;
  if (now - idle_since_ < options_.exit_when_idle || IsShuttingDown()) return;
  LogInfo("there was no task for ",
          absl::FormatDuration(options_.exit_when_idle), ": stopping");
  Shutdown();
}

absl::Duration Synchronizer::IdlePoll() const {
  const absl::Duration left =
      idle_since_ + options_.exit_when_idle - options_.clock->Now();
  return std::min(options_.idle_poll, std::max(left, kLeastPause));
}

absl::Duration Synchronizer::HeldPoll() const {
  return std::min(options_.held_poll, std::max(lease_ / 5, kLeastPause));
}

void Synchronizer::NoteFailure(const absl::Status& status) {
  // Once for each break, not for each attempt.
  if (!std::exchange(complained_, true)) {
    LogWarning("no answer from the server, trying on: ", status.ToString());
  }
  connected_ = false;
}

void Synchronizer::Pause(absl::Duration duration, bool for_news) {
  absl::MutexLock lock(&mutex_);
  const bool was_shutting_down = shutting_down_;
  const auto over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return (for_news && news_) || shutting_down_ != was_shutting_down;
  };
  options_.clock->AwaitWithTimeout(&mutex_, absl::Condition(&over), duration);
}

void Synchronizer::SayGoodbye() {
  if (!connected_ || options_.devices == nullptr) return;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(2)));
  absl::Duration long_poll;
  v1::SynchronizeRequest request = BuildRequest(&long_poll);
  request.clear_long_poll();
  v1::SynchronizeResponse response;
  const grpc::Status ignored = stub_->Synchronize(&context, request, &response);
}

void Synchronizer::Shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    shutting_down_ = true;
  }
  held_.RequestRelease();
  Wake();
}

void Synchronizer::Wake() {
  absl::MutexLock lock(&mutex_);
  news_ = true;
  if (call_ != nullptr) call_->TryCancel();
}

bool Synchronizer::IsShuttingDown() const {
  absl::MutexLock lock(&mutex_);
  return shutting_down_;
}

}  // namespace optfarm::rpc
