#include "base/service_manager.h"

#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace optfarm {
namespace {

void Tell(absl::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  const size_t length = std::strlen(path);
  if (length >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, path, length);
  // An abstract name, which is not a file's.
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  // Nothing depends on the answer: who does not hear it starts us again.
  [[maybe_unused]] const ssize_t sent = ::sendto(
      fd, state.data(), state.size(), MSG_NOSIGNAL,
      reinterpret_cast<const sockaddr*>(&address),
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
  ::close(fd);
}

// What this process has done so far.
struct Work {
  absl::Duration processor;
  // UNITS: blocks read and written.
  int64_t blocks = 0;
};

Work WorkOfProcess() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return {absl::DurationFromTimeval(usage.ru_utime) +
              absl::DurationFromTimeval(usage.ru_stime),
          usage.ru_inblock + usage.ru_oublock};
}

// More than what looking takes.
constexpr double kLeastShareOfAProcessor = 0.01;

}  // namespace

ServiceStart::ServiceStart(absl::Duration between_looks) {
  if (std::getenv("NOTIFY_SOCKET") == nullptr) return;
  thread_ = std::thread([this, between_looks] { Watch(between_looks); });
}

ServiceStart::~ServiceStart() {
  ended_.Notify();
  if (thread_.joinable()) thread_.join();
}

void ServiceStart::Watch(absl::Duration between_looks) {
  Work before = WorkOfProcess();
  while (!ended_.WaitForNotificationWithTimeout(between_looks)) {
    const Work now = WorkOfProcess();
    if (now.blocks > before.blocks ||
        now.processor - before.processor >
            between_looks * kLeastShareOfAProcessor) {
      // Five more looks may find nothing.
      Tell(absl::StrCat("EXTEND_TIMEOUT_USEC=",
                        absl::ToInt64Microseconds(6 * between_looks)));
    }
    before = now;
  }
}

void TellServiceReady() { Tell("READY=1"); }
void TellServiceAlive() { Tell("WATCHDOG=1"); }
void TellServiceStopping() { Tell("STOPPING=1"); }

}  // namespace optfarm
