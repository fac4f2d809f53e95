// A folder of temporary files that is gone also when the user presses Ctrl-C.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_INTERRUPT_CLEANUP_H_
#define OPTFARM_CLIENT_CLI_COMMAND_INTERRUPT_CLEANUP_H_

#include <csignal>
#include <string>
#include <thread>

namespace optfarm::client_cli {

// While it lives, SIGINT, SIGTERM and SIGHUP remove the folder and end the
// process with 128 + the signal's number. Its end removes the folder too.
// REQUIRES: made before other threads, which inherit the blocked signals.
class InterruptCleanup {
 public:
  explicit InterruptCleanup(std::string folder);
  ~InterruptCleanup();
  InterruptCleanup(const InterruptCleanup&) = delete;
  InterruptCleanup& operator=(const InterruptCleanup&) = delete;

 private:
  void Wait();

  const std::string folder_;
  sigset_t signals_;
  sigset_t before_;
  // Wakes the thread at the end.
  int wake_ = -1;
  std::thread thread_;
};

// While it lives, SIGINT, SIGTERM and SIGHUP print `text` on standard error and
// end the process with 128 + the signal's number. One at a time.
class InterruptMessage {
 public:
  explicit InterruptMessage(const std::string& text);
  ~InterruptMessage();
  InterruptMessage(const InterruptMessage&) = delete;
  InterruptMessage& operator=(const InterruptMessage&) = delete;
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_INTERRUPT_CLEANUP_H_
