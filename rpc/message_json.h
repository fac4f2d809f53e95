// Messages as JSON by protobuf's own mapping, with the field names of the
// contracts ("median_us") and every field that is not a message, so that a
// reader need not know defaults; deprecated fields only where they are set.
// What is common is written here, several times as fast as protobuf writes it;
// the rest is left to protobuf.

#ifndef OPTFARM_RPC_MESSAGE_JSON_H_
#define OPTFARM_RPC_MESSAGE_JSON_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/statusor.h"

namespace optfarm::rpc {

enum class JsonLines {
  // All on one line, without a newline at its end.
  kOne,
  // A value a line, indented by one blank a level, the last line ended too.
  kMany,
};

// ERRORS: Internal for what JSON cannot say, such as a time after the year
// 9999.
absl::StatusOr<std::string> MessageToJson(
    const google::protobuf::Message& message, JsonLines lines);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_MESSAGE_JSON_H_
