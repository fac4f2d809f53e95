#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "http/byte_stream.h"

namespace optfarm::http {
namespace {

// Waits until the socket is ready for `events`.
absl::Status Await(int fd, short events, absl::Time deadline) {
  while (true) {
    const absl::Duration left =
        std::clamp(deadline - absl::Now(), absl::ZeroDuration(),
                   absl::Duration(absl::Hours(1)));
    pollfd waited = {fd, events, 0};
    // Rounded up, so that nothing spins through the last millisecond.
    const int64_t ms =
        absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
    const int ready = ::poll(&waited, 1, static_cast<int>(ms));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) {
      return ErrnoToStatus(errno, "waiting for a connection");
    }
    if (ready == 0 && absl::Now() >= deadline) {
      return absl::DeadlineExceededError("the connection was quiet for long");
    }
  }
}

class SocketStream final : public ByteStream {
 public:
  explicit SocketStream(int fd) : fd_(fd) {}
  ~SocketStream() override { ::close(fd_); }

  absl::StatusOr<size_t> Read(char* buffer, size_t size,
                              absl::Time deadline) override {
    while (true) {
      const ssize_t n = ::recv(fd_, buffer, size, MSG_DONTWAIT);
      if (n >= 0) return static_cast<size_t>(n);
      absl::Status status = Blocked(POLLIN, deadline);
      if (!status.ok()) return status;
    }
  }

  absl::Status Write(absl::string_view bytes, absl::Time deadline) override {
    while (!bytes.empty()) {
      const ssize_t n =
          ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n >= 0) {
        bytes.remove_prefix(static_cast<size_t>(n));
        continue;
      }
      absl::Status status = Blocked(POLLOUT, deadline);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  bool PeerGone() override {
    pollfd asked = {fd_, POLLRDHUP, 0};
    return ::poll(&asked, 1, 0) > 0;
  }

  void CloseWrite() override { ::shutdown(fd_, SHUT_WR); }

  std::string Peer() const override {
    sockaddr_storage address = {};
    socklen_t length = sizeof(address);
    char host[INET6_ADDRSTRLEN + 1];
    char port[8];
    if (::getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &length) !=
            0 ||
        ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host,
                      sizeof(host), port, sizeof(port),
                      NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
      return "";
    }
    return absl::StrCat("http:", host, ":", port);
  }

 private:
  // What to do after a call that failed with errno: wait, or give up.
  absl::Status Blocked(short events, absl::Time deadline) {
    if (errno == EINTR) return absl::OkStatus();
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Await(fd_, events, deadline);
    }
    return ErrnoToStatus(errno, "using a connection");
  }

  const int fd_;
};

}  // namespace

absl::Status AwaitWritable(int fd, absl::Time deadline) {
  return Await(fd, POLLOUT, deadline);
}

std::unique_ptr<ByteStream> MakeSocketStream(int fd) {
  return std::make_unique<SocketStream>(fd);
}

}  // namespace optfarm::http
