#include "client_cli/tables/proto_json.h"

#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include "rpc/message_json.h"

namespace optfarm::client_cli {

std::string ProtoToJson(const google::protobuf::Message& message) {
  // A server's message may hold a time outside of what JSON can say.
  return rpc::MessageToJson(message, rpc::JsonLines::kMany).value_or("{}\n");
}

std::string ProtoToJsonLine(const google::protobuf::Message& message) {
  return rpc::MessageToJson(message, rpc::JsonLines::kOne).value_or("{}");
}

absl::Time ToTime(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) +
         absl::Nanoseconds(timestamp.nanos());
}

void SetTimestamp(absl::Time time, google::protobuf::Timestamp* timestamp) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  timestamp->set_seconds(seconds);
  timestamp->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

}  // namespace optfarm::client_cli
