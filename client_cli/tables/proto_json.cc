#include "client_cli/tables/proto_json.h"

#include <google/protobuf/message.h>

#include "rpc/message_json.h"

namespace optfarm::client_cli {

std::string ProtoToJson(const google::protobuf::Message& message) {
  // A server's message may hold a time outside of what JSON can say.
  return rpc::MessageToJson(message, rpc::JsonLines::kMany).value_or("{}\n");
}

std::string ProtoToJsonLine(const google::protobuf::Message& message) {
  return rpc::MessageToJson(message, rpc::JsonLines::kOne).value_or("{}");
}

}  // namespace optfarm::client_cli
