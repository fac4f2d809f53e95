#include "engine_host/socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

namespace optfarm::engine_host {
namespace {

// UNITS: bytes. A payload grows by this much at most before its bytes are
// there.
constexpr uint64_t kPiece = uint64_t{1} << 20;

class Deadline {
 public:
  explicit Deadline(int milliseconds)
      : forever_(milliseconds < 0),
        end_(std::chrono::steady_clock::now() +
             std::chrono::milliseconds(std::max(milliseconds, 0))) {}

  // Until the socket can be used, or there is nothing left to wait for.
  Transfer Await(int socket, short events) const {
    for (;;) {
      pollfd poll_for = {socket, events, 0};
      const int ready = ::poll(&poll_for, 1, Left());
      if (ready > 0) return Transfer::kDone;
      if (ready == 0 && !forever_) return Transfer::kLate;
      if (ready < 0 && errno != EINTR) return Transfer::kClosed;
    }
  }

 private:
  int Left() const {
    if (forever_) return -1;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

  const bool forever_;
  const std::chrono::steady_clock::time_point end_;
};

bool MayTryAgain(int error) {
  return error == EINTR || error == EAGAIN || error == EWOULDBLOCK;
}

Transfer Send(int socket, const char* bytes, size_t size,
              const Deadline& deadline) {
  while (size > 0) {
    const Transfer ready = deadline.Await(socket, POLLOUT);
    if (ready != Transfer::kDone) return ready;
    const ssize_t n = ::send(socket, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && MayTryAgain(errno)) continue;
    if (n <= 0) return Transfer::kClosed;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return Transfer::kDone;
}

Transfer Receive(int socket, char* bytes, size_t size,
                 const Deadline& deadline) {
  while (size > 0) {
    const Transfer ready = deadline.Await(socket, POLLIN);
    if (ready != Transfer::kDone) return ready;
    const ssize_t n = ::recv(socket, bytes, size, MSG_DONTWAIT);
    if (n < 0 && MayTryAgain(errno)) continue;
    if (n <= 0) return Transfer::kClosed;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return Transfer::kDone;
}

}  // namespace

Transfer SendFrame(int socket, FrameKind kind, uint32_t seconds,
                   std::string_view payload, int milliseconds) {
  if (payload.size() > kMaxPayload) return Transfer::kTooLong;
  const Deadline deadline(milliseconds);
  const FrameHeader header = {kind, seconds, payload.size()};
  const Transfer sent = Send(socket, reinterpret_cast<const char*>(&header),
                             sizeof(header), deadline);
  if (sent != Transfer::kDone) return sent;
  return Send(socket, payload.data(), payload.size(), deadline);
}

Transfer ReceiveFrame(int socket, FrameHeader* header, std::string* payload,
                      int milliseconds) {
  const Deadline deadline(milliseconds);
  const Transfer received = Receive(socket, reinterpret_cast<char*>(header),
                                    sizeof(*header), deadline);
  if (received != Transfer::kDone) return received;
  if (header->size > kMaxPayload) return Transfer::kTooLong;
  payload->clear();
  while (payload->size() < header->size) {
    const size_t begin = payload->size();
    payload->resize(begin + std::min(kPiece, header->size - begin));
    const Transfer piece = Receive(socket, payload->data() + begin,
                                   payload->size() - begin, deadline);
    if (piece != Transfer::kDone) return piece;
  }
  return Transfer::kDone;
}

}  // namespace optfarm::engine_host
