#include "rpc/proto_time.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>

namespace optfarm::rpc {

using ::google::protobuf::util::TimeUtil;

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  // TimeUtil ends the program on any other.
  time = std::clamp(time, absl::FromUnixSeconds(TimeUtil::kTimestampMinSeconds),
                    absl::FromUnixSeconds(TimeUtil::kTimestampMaxSeconds));
  return TimeUtil::MicrosecondsToTimestamp(absl::ToUnixMicros(time));
}

// Not by TimeUtil, which ends the program on numbers that no clock shows.
absl::Time FromTimestamp(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) +
         absl::Nanoseconds(timestamp.nanos());
}

google::protobuf::Duration ToProtoDuration(absl::Duration duration) {
  return TimeUtil::MicrosecondsToDuration(absl::ToInt64Microseconds(
      std::clamp(duration, absl::ZeroDuration(), absl::Hours(24 * 365 * 100))));
}

absl::Duration FromProtoDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

}  // namespace optfarm::rpc
