#include "server/grpc_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "http/peer_address.h"

namespace optfarm::server {
namespace {

constexpr int kBacklog = 1024;
constexpr absl::Duration kPauseWithoutFiles = absl::Milliseconds(100);
// UNITS: descriptors for everything else that a server has open.
constexpr int64_t kOtherFiles = 512;

absl::Status Unavailable(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("listening on ", address, ": ",
                                             why, "; give another --grpc"));
}

// What gRPC calls who is at the other end.
std::string NameOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(v6.sin6_port));
  }
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return absl::StrCat("ipv6:%5B", text, "%5D:", ntohs(v6.sin6_port));
}

// For how long nothing has come or gone, by the kernel's own clock.
absl::Duration SilenceOf(int socket) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return absl::InfiniteDuration();
  }
  return absl::Milliseconds(
      std::min(info.tcpi_last_data_recv, info.tcpi_last_data_sent));
}

ConnectionLimits::Options WithinFiles(ConnectionLimits::Options limits) {
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return limits;
  const int64_t most = std::max<int64_t>(
      64, (static_cast<int64_t>(std::min<rlim_t>(files.rlim_cur, 1 << 30)) -
           kOtherFiles) /
              2);
  if (most < limits.max_connections) {
    LogInfo("at most ", most, " gRPC connections: this process may open ",
            files.rlim_cur, " files");
    limits.max_connections = static_cast<int>(most);
  }
  return limits;
}

// -1 with errno when the address cannot be had.
int ListenAt(const addrinfo& at, uint16_t port) {
  sockaddr_storage address = {};
  std::memcpy(&address, at.ai_addr, at.ai_addrlen);
  // At the same place for both kinds.
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  const int fd =
      ::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1;
  const int off = 0;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // [::] means both kinds of addresses.
  if (at.ai_family == AF_INET6) {
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), at.ai_addrlen) ==
          0 &&
      ::listen(fd, kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

uint16_t PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

GrpcListener::GrpcListener(const ConnectionLimits::Options& limits)
    : limits_(
          WithinFiles(limits),
          [](int socket) { ::shutdown(socket, SHUT_RDWR); }, &SilenceOf) {}

absl::StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Listen(
    const std::string& address, ConnectionLimits::Options limits) {
  std::unique_ptr<GrpcListener> listener(new GrpcListener(limits));
  OPTFARM_RETURN_IF_ERROR(listener->Bind(address));
  return listener;
}

absl::Status GrpcListener::Bind(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return Unavailable(address, "it has no port");
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int trouble =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                    address.substr(colon + 1).c_str(), &hints, &found);
  if (trouble != 0) return Unavailable(address, ::gai_strerror(trouble));
  uint16_t port =
      ntohs(reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_port);
  int error = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = ListenAt(*at, port);
    if (fd < 0) {
      // A machine may lack one kind of addresses; what another program has is
      // not ours alone.
      if (errno == EADDRINUSE || error == 0) error = errno;
      if (errno == EADDRINUSE) break;
      continue;
    }
    listeners_.push_back(fd);
    port = PortOf(fd);
  }
  ::freeaddrinfo(found);
  if (listeners_.empty() || error == EADDRINUSE) {
    return Unavailable(address, error == EADDRINUSE
                                    ? "the address is in use"
                                    : absl::string_view(::strerror(error)));
  }
  address_ = absl::StrCat(address.substr(0, colon), ":", port);
  poll_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  if (poll_ < 0 || wake_ < 0) return Unavailable(address, "out of resources");
  return absl::OkStatus();
}

GrpcListener::~GrpcListener() {
  Stop();
  for (const int fd : listeners_) ::close(fd);
  for (const int fd : limits_.Sockets()) ::close(fd);
  if (poll_ >= 0) ::close(poll_);
  if (wake_ >= 0) ::close(wake_);
}

void GrpcListener::Start(Take take) {
  take_ = std::move(take);
  std::vector<int> watched = listeners_;
  watched.push_back(wake_);
  for (const int fd : watched) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
  }
  thread_ = std::thread([this] { Run(); });
}

void GrpcListener::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  if (::write(wake_, &one, sizeof(one)) < 0) LogError("waking the gRPC door");
  thread_.join();
  for (const int fd : std::exchange(listeners_, {})) ::close(fd);
}

void GrpcListener::Run() {
  epoll_event events[64];
  while (true) {
    const int count = ::epoll_wait(poll_, events, std::size(events), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == wake_) return;
      if (std::find(listeners_.begin(), listeners_.end(), fd) ==
          listeners_.end()) {
        Forget(fd);
        continue;
      }
      while (AcceptOne(fd)) continue;
    }
  }
}

bool GrpcListener::AcceptOne(int listener) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  const int socket = ::accept4(listener, reinterpret_cast<sockaddr*>(&address),
                               &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) {
    const int error = errno;
    if (error == EMFILE || error == ENFILE || error == ENOMEM) {
      // Asking again at once would only burn the processor.
      absl::SleepFor(kPauseWithoutFiles);
    }
    return error == ECONNABORTED || error == EINTR;
  }
  // The socket is gRPC's. Of its end, whoever brings it about, a second
  // descriptor tells, by which it can be broken off, too.
  const int watched = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (watched < 0 ||
      !limits_.Enter(watched, http::PeerOf(address), NameOf(address))) {
    if (watched >= 0) ::close(watched);
    ::close(socket);
    return true;
  }
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  epoll_event event = {};
  event.events = EPOLLRDHUP | EPOLLET;
  event.data.fd = watched;
  if (::epoll_ctl(poll_, EPOLL_CTL_ADD, watched, &event) != 0) {
    limits_.Leave(watched);
    ::close(watched);
    ::close(socket);
    return true;
  }
  take_(listener, socket);
  return true;
}

void GrpcListener::Forget(int watched) {
  limits_.Leave(watched);
  // Closing alone leaves it in the set for as long as gRPC has its own
  // descriptor of the same connection, and a later event would then be taken
  // for one of whoever has this number next.
  ::epoll_ctl(poll_, EPOLL_CTL_DEL, watched, nullptr);
  ::close(watched);
}

}  // namespace optfarm::server
