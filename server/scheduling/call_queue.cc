#include "server/scheduling/call_queue.h"

#include <utility>

namespace optfarm::server {
namespace {

// Served together. Those who came first are answered before more are served.
constexpr size_t kMaxTogether = 128;

}  // namespace

CallQueue::CallQueue(LongPolls& polls)
    : polls_(polls), thread_([this] { Loop(); }) {}

CallQueue::~CallQueue() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void CallQueue::Add(IncomingCall call) {
  absl::MutexLock lock(&mutex_);
  waiting_.push_back(std::move(call));
}

std::vector<IncomingCall> CallQueue::TakeSome() {
  absl::MutexLock lock(&mutex_);
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || !waiting_.empty();
  };
  mutex_.Await(absl::Condition(&something));
  std::vector<IncomingCall> calls;
  while (!waiting_.empty() && calls.size() < kMaxTogether) {
    calls.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return calls;
}

void CallQueue::Loop() {
  while (true) {
    std::vector<IncomingCall> calls = TakeSome();
    if (calls.empty()) return;
    polls_.Serve(std::move(calls));
  }
}

}  // namespace optfarm::server
