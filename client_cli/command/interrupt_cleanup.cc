#include "client_cli/command/interrupt_cleanup.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/files.h"

namespace optfarm::client_cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// What a handler may read: bytes and their number, 0 for no message.
char interrupt_text[512];
std::atomic<size_t> interrupt_size{0};

void PrintMessage() {
  const size_t size = interrupt_size.load();
  // Nobody is left to hear of an error.
  if (size > 0 && write(STDERR_FILENO, interrupt_text, size) < 0) return;
}

extern "C" void EndWithMessage(int signal) {
  PrintMessage();
  _exit(128 + signal);
}

}  // namespace

InterruptMessage::InterruptMessage(const std::string& text) {
  const size_t size = std::min(text.size(), sizeof(interrupt_text));
  memcpy(interrupt_text, text.data(), size);
  interrupt_size = size;
  struct sigaction action = {};
  action.sa_handler = EndWithMessage;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

InterruptMessage::~InterruptMessage() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
  interrupt_size = 0;
}

InterruptCleanup::InterruptCleanup(std::string folder)
    : folder_(std::move(folder)), wake_(eventfd(0, EFD_CLOEXEC)) {
  OPTFARM_CHECK(wake_ >= 0);
  sigemptyset(&signals_);
  for (const int signal : kSignals) sigaddset(&signals_, signal);
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
    PrintMessage();
    // Children that still write there end with us.
    _exit(128 + static_cast<int>(info.ssi_signo));
  }
  close(signals);
}

}  // namespace optfarm::client_cli
