// The border between our errors (absl::Status) and gRPC's. Code, message and
// details cross it both ways; nothing else in the tree looks at grpc::Status.

#ifndef OPTFARM_RPC_STATUS_H_
#define OPTFARM_RPC_STATUS_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace optfarm::rpc {

// Converts for the wire. Payloads of `status` travel as the details of a
// google.rpc.Status, which other languages' libraries can read. A message is
// cut at 2000 bytes, and payloads that do not fit into 3600 together are left
// out, because a peer refuses longer trailers and with them the whole answer.
grpc::Status ToGrpc(const absl::Status& status);

// Converts from the wire. A code that is none of the canonical ones becomes
// Unknown; malformed details are dropped.
absl::Status FromGrpc(const grpc::Status& status);

// Puts `detail` into the payloads of `status`, replacing one of the same type.
// No effect on an OK status.
void AddDetail(const google::protobuf::Message& detail, absl::Status* status);

// Reads the detail of `*detail`'s type. Returns false, with `*detail` as it
// was, when there is none.
bool GetDetail(const absl::Status& status, google::protobuf::Message* detail);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_STATUS_H_
