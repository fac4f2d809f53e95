#include "client_cli/proto_json.h"

#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/json_util.h>

namespace optfarm::client_cli {
namespace {

std::string Convert(const google::protobuf::Message& message, bool indented) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = indented;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status =
      google::protobuf::util::MessageToJsonString(message, &json, options);
  // A server's message may hold a time outside of what JSON can say.
  if (!status.ok()) return indented ? "{}\n" : "{}";
  return json;
}

}  // namespace

std::string ProtoToJson(const google::protobuf::Message& message) {
  return Convert(message, true);
}

std::string ProtoToJsonLine(const google::protobuf::Message& message) {
  return Convert(message, false);
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
