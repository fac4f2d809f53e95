// absl's times and durations as protobuf's, and back.

#ifndef OPTFARM_SERVER_CONVENTIONS_PROTO_TIME_H_
#define OPTFARM_SERVER_CONVENTIONS_PROTO_TIME_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/time/time.h"

namespace optfarm::server {

// REQUIRES: a finite time. Whole microseconds.
google::protobuf::Timestamp ToTimestamp(absl::Time time);
absl::Time FromTimestamp(const google::protobuf::Timestamp& timestamp);

// Whole microseconds; negative durations become 0, very long ones 100 years.
google::protobuf::Duration ToProtoDuration(absl::Duration duration);
absl::Duration FromProtoDuration(const google::protobuf::Duration& duration);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_CONVENTIONS_PROTO_TIME_H_
