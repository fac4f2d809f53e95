// Calls of workers and agents on their way to the scheduler. A thread
// takes them from gRPC's two or so, which never wait for the disk; while some
// are made durable the next ones gather, and are made durable together.

#ifndef OPTFARM_SERVER_SCHEDULING_CALL_QUEUE_H_
#define OPTFARM_SERVER_SCHEDULING_CALL_QUEUE_H_

#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/scheduling/long_polls.h"

namespace optfarm::server {

// THREADS: safe.
class CallQueue {
 public:
  // OWNERSHIP: the polls outlive the queue.
  explicit CallQueue(LongPolls& polls);
  // Serves what is left, and ends.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Has it served soon, in order of arrival.
  void Add(IncomingCall call);

 private:
  void Loop();
  std::vector<IncomingCall> TakeSome();

  LongPolls& polls_;
  absl::Mutex mutex_;
  std::deque<IncomingCall> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_CALL_QUEUE_H_
