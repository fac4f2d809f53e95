#include "http/peer_address.h"

#include <netinet/in.h>

namespace optfarm::http {

std::string PeerOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return std::string(reinterpret_cast<const char*>(&v4.sin_addr),
                       sizeof(v4.sin_addr));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    const char* bytes = reinterpret_cast<const char*>(&v6.sin6_addr);
    // One IPv4 host is the same peer at either kind of socket.
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return std::string(bytes + 12, 4);
    return std::string(bytes, 8);
  }
  return "";
}

}  // namespace optfarm::http
