#include "http/outgoing_request.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/files.h"
#include "base/status_macros.h"
#include "http/address_lookup.h"

namespace optfarm::http {
namespace {

absl::Status ConnectSocket(int fd, const HostAddress& address,
                           absl::Time deadline, Cancellation* cancellation) {
  const Cancellation::Watch watch(cancellation, fd);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.address),
                address.length) == 0) {
    return absl::OkStatus();
  }
  if (errno != EINPROGRESS) return ErrnoToStatus(errno, "connecting");
  OPTFARM_RETURN_IF_ERROR(AwaitWritable(fd, deadline));
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
      error != 0) {
    return ErrnoToStatus(error, "connecting");
  }
  return absl::OkStatus();
}

// A connected socket.
absl::StatusOr<int> ConnectTo(const HostAddress& address, absl::Time deadline,
                              Cancellation* cancellation) {
  const int fd =
      ::socket(address.family, address.type | SOCK_CLOEXEC | SOCK_NONBLOCK,
               address.protocol);
  if (fd < 0) return ErrnoToStatus(errno, "making a socket");
  const absl::Status status =
      ConnectSocket(fd, address, deadline, cancellation);
  if (status.ok()) return fd;
  ::close(fd);
  return status;
}

// A socket that is connected to one of the addresses.
absl::StatusOr<int> Connect(const Url& url, absl::Time deadline,
                            Cancellation* cancellation) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<HostAddress> addresses,
      LookUpAddresses(url.host, url.port, deadline, cancellation));
  absl::Status last = absl::UnavailableError("no address");
  for (const HostAddress& one : addresses) {
    const absl::StatusOr<int> fd = ConnectTo(one, deadline, cancellation);
    if (fd.ok()) return fd;
    last = fd.status();
    if (cancellation != nullptr && cancellation->cancelled()) break;
  }
  return last;
}

}  // namespace

absl::Status OutgoingRequest::Send(const Url& url, absl::string_view bytes,
                                   absl::Time deadline,
                                   Cancellation* cancellation) {
  OPTFARM_ASSIGN_OR_RETURN(const int socket,
                           Connect(url, deadline, cancellation));
  stream_ = url.tls ? MakeTlsClientStream(socket, url.host)
                    : MakeSocketStream(socket);
  watch_.emplace(cancellation, socket);
  return stream_->Write(bytes, deadline);
}

}  // namespace optfarm::http
