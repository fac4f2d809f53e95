// Messages as JSON by protobuf's own mapping, with the field names of the
// contracts ("median_us") and all fields that are not set in it.

#ifndef OPTFARM_CLIENT_CLI_TABLES_PROTO_JSON_H_
#define OPTFARM_CLIENT_CLI_TABLES_PROTO_JSON_H_

#include <string>

#include "absl/time/time.h"

namespace google::protobuf {
class Message;
class Timestamp;
}  // namespace google::protobuf

namespace optfarm::client_cli {

// Indented over several lines, with a newline at the end; or all on one line
// without one.
std::string ProtoToJson(const google::protobuf::Message& message);
std::string ProtoToJsonLine(const google::protobuf::Message& message);

// The epoch for a time that was never set.
absl::Time ToTime(const google::protobuf::Timestamp& timestamp);
void SetTimestamp(absl::Time time, google::protobuf::Timestamp* timestamp);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_PROTO_JSON_H_
