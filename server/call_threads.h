// Threads for calls that wait for the disk. gRPC has two or so that take calls
// in; would they wait, no two calls would come together, and what is made
// durable for many at once is made durable for one.

#ifndef OPTFARM_SERVER_CALL_THREADS_H_
#define OPTFARM_SERVER_CALL_THREADS_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace optfarm::server {

// THREADS: safe.
class CallThreads {
 public:
  explicit CallThreads(int threads);
  // Does what is left, and ends.
  ~CallThreads();
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;

  // Does it soon, in order of arrival, on one of the threads.
  void Do(std::function<void()> work);

 private:
  void Loop();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_CALL_THREADS_H_
