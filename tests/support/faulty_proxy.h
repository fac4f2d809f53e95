// A TCP proxy before an HTTP server that breaks chosen requests. One request a
// connection.

#ifndef OPTFARM_TESTS_SUPPORT_FAULTY_PROXY_H_
#define OPTFARM_TESTS_SUPPORT_FAULTY_PROXY_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace optfarm::testing {

enum class Fault {
  kNone,
  // The server sees nothing of the request:
  kCutAtHead,
  kCutInBody,
  kStatus500,
  kSlowDown,
  kStall,
  // The server has done what was asked:
  kCutBeforeAnswer,
  kCutInAnswer,
  kWrongEtag,
};

// THREADS: safe.
class FaultyProxy {
 public:
  // On a free port of loopback.
  static absl::StatusOr<std::unique_ptr<FaultyProxy>> Start(int server_port);
  // Ends connections that are open.
  ~FaultyProxy();

  std::string endpoint() const;

  // Requests count from 0 again, and `count` of them from `first` on fail.
  void Break(Fault fault, int first, int count) ABSL_LOCKS_EXCLUDED(mutex_);
  void Mend() { Break(Fault::kNone, 0, 0); }
  // Since the last Break.
  int requests() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  FaultyProxy(int listener, int port, int server_port);
  void Accept();
  void Handle(int client);
  Fault NextFault() ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Ask(const std::string& head, const std::string& body);

  const int listener_;
  const int port_;
  const int server_port_;
  std::atomic<bool> stopping_ = false;
  absl::Mutex mutex_;
  Fault fault_ ABSL_GUARDED_BY(mutex_) = Fault::kNone;
  int first_ ABSL_GUARDED_BY(mutex_) = 0;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  int requests_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> handlers_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_SUPPORT_FAULTY_PROXY_H_
