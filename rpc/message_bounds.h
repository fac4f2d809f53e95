// What a message would cost once parsed, told from its bytes alone. Two bytes
// on the wire can become a hundred in memory, so a bound on the bytes is none
// on the memory.

#ifndef OPTFARM_RPC_MESSAGE_BOUNDS_H_
#define OPTFARM_RPC_MESSAGE_BOUNDS_H_

#include <google/protobuf/descriptor.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::rpc {

// UNITS: bytes.
struct MessageBounds {
  // As serialized.
  size_t max_bytes = size_t{1} << 20;
  // In memory, as ParsedBytes estimates it.
  size_t max_parsed_bytes = size_t{16} << 20;
};

// How much memory a message of `type` takes that is parsed from `wire`: an
// estimate from the sizes of its objects, never far below the truth. Allocates
// nothing and stops once the bounds are passed.
// ERRORS: ResourceExhausted for more than the bounds; InvalidArgument for what
// is no message.
absl::StatusOr<size_t> ParsedBytes(const google::protobuf::Descriptor& type,
                                   absl::string_view wire,
                                   const MessageBounds& bounds);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_MESSAGE_BOUNDS_H_
