// absl's times and durations as protobuf's, and back.

#ifndef OPTFARM_RPC_PROTO_TIME_H_
#define OPTFARM_RPC_PROTO_TIME_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/time/time.h"

namespace optfarm::rpc {

// Whole microseconds; times before the year 1 or after 9999 become these.
google::protobuf::Timestamp ToTimestamp(absl::Time time);
// The epoch for a time that was never set. A peer's message may hold any
// numbers: far ones saturate.
absl::Time FromTimestamp(const google::protobuf::Timestamp& timestamp);

// Whole microseconds; negative durations become 0, very long ones 100 years.
google::protobuf::Duration ToProtoDuration(absl::Duration duration);
// Far ones saturate.
absl::Duration FromProtoDuration(const google::protobuf::Duration& duration);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_PROTO_TIME_H_
