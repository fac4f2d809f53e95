// Whose connection it is, for limits by peer.

#ifndef OPTFARM_HTTP_PEER_ADDRESS_H_
#define OPTFARM_HTTP_PEER_ADDRESS_H_

#include <sys/socket.h>

#include <string>

namespace optfarm::http {

// The bytes of an address, or of an IPv6 network, of which one host may have
// all addresses. Equal for equal peers, and not for people.
std::string PeerOf(const sockaddr_storage& address);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_PEER_ADDRESS_H_
