#include "server/conventions/proto_time.h"

#include <algorithm>

namespace optfarm::server {

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  const int64_t micros = absl::ToUnixMicros(time);
  int64_t seconds = micros / 1000000;
  int64_t rest = micros % 1000000;
  if (rest < 0) {
    rest += 1000000;
    --seconds;
  }
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(static_cast<int32_t>(rest * 1000));
  return timestamp;
}

absl::Time FromTimestamp(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) +
         absl::Nanoseconds(timestamp.nanos());
}

google::protobuf::Duration ToProtoDuration(absl::Duration duration) {
  duration =
      std::clamp(duration, absl::ZeroDuration(), absl::Hours(24 * 365 * 100));
  const int64_t micros = absl::ToInt64Microseconds(duration);
  google::protobuf::Duration result;
  result.set_seconds(micros / 1000000);
  result.set_nanos(static_cast<int32_t>(micros % 1000000 * 1000));
  return result;
}

absl::Duration FromProtoDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

}  // namespace optfarm::server
