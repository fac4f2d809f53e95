#include "client_cli/command/interrupt_cleanup.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/files.h"

namespace optfarm::client_cli {

InterruptCleanup::InterruptCleanup(std::string folder)
    : folder_(std::move(folder)), wake_(eventfd(0, EFD_CLOEXEC)) {
  OPTFARM_CHECK(wake_ >= 0);
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&signals_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  thread_ = std::thread([this] { Wait(); });
}

InterruptCleanup::~InterruptCleanup() {
  const uint64_t one = 1;
  OPTFARM_CHECK(write(wake_, &one, sizeof(one)) == sizeof(one));
  thread_.join();
  close(wake_);
  (void)RemoveAll(folder_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void InterruptCleanup::Wait() {
  const int signals = signalfd(-1, &signals_, SFD_CLOEXEC);
  OPTFARM_CHECK(signals >= 0);
  pollfd polled[] = {{signals, POLLIN, 0}, {wake_, POLLIN, 0}};
  while (poll(polled, 2, -1) < 0) OPTFARM_CHECK(errno == EINTR);
  signalfd_siginfo info = {};
  if ((polled[0].revents & POLLIN) != 0 &&
      read(signals, &info, sizeof(info)) == sizeof(info)) {
    (void)RemoveAll(folder_);
    // Children that still write there end with us.
    _exit(128 + static_cast<int>(info.ssi_signo));
  }
  close(signals);
}

}  // namespace optfarm::client_cli
