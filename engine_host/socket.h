// Frames through a socket. Nothing here waits longer than it is told to.

#ifndef OPTFARM_ENGINE_HOST_SOCKET_H_
#define OPTFARM_ENGINE_HOST_SOCKET_H_

#include <string>
#include <string_view>

#include "engine_host/protocol.h"

namespace optfarm::engine_host {

enum class Transfer {
  kDone,
  // The other end is gone, or has broken off in the middle.
  kClosed,
  // Not all of it came, or went, in time.
  kLate,
  // A payload of more than kMaxPayload.
  kTooLong,
};

// `milliseconds` for the whole frame; -1: as long as it takes.
Transfer SendFrame(int socket, FrameKind kind, uint32_t seconds,
                   std::string_view payload, int milliseconds);
Transfer ReceiveFrame(int socket, FrameHeader* header, std::string* payload,
                      int milliseconds);

}  // namespace optfarm::engine_host

#endif  // OPTFARM_ENGINE_HOST_SOCKET_H_
