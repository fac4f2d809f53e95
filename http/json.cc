#include "http/json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "rpc/message_json.h"

namespace optfarm::http {

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  return rpc::MessageToJson(message, rpc::JsonLines::kOne);
}

absl::Status FromJson(absl::string_view json,
                      google::protobuf::Message* message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  const auto status = google::protobuf::util::JsonStringToMessage(
      {json.data(), json.size()}, message, options);
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the body is not the JSON of a ", message->GetDescriptor()->name(), ": ",
      std::string(status.message()).substr(0, 500)));
}

}  // namespace optfarm::http
