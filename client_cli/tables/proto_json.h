// Messages as JSON by protobuf's own mapping, with the field names of the
// contracts ("median_us") and all fields that are not set in it.

#ifndef OPTFARM_CLIENT_CLI_TABLES_PROTO_JSON_H_
#define OPTFARM_CLIENT_CLI_TABLES_PROTO_JSON_H_

#include <string>

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace optfarm::client_cli {

// Indented over several lines, with a newline at the end; or all on one line
// without one.
std::string ProtoToJson(const google::protobuf::Message& message);
std::string ProtoToJsonLine(const google::protobuf::Message& message);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_PROTO_JSON_H_
