#include "http/json.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "rpc/message_json.h"

namespace optfarm::http {

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  return rpc::MessageToJson(message, rpc::JsonLines::kOne);
}

absl::Status FromJson(absl::string_view json, const rpc::MessageBounds& bounds,
                      google::protobuf::Message* message) {
  namespace util = google::protobuf::util;
  // As JsonStringToMessage does it, with a look before the message is made.
  static constexpr char kPrefix[] = "type.googleapis.com";
  static util::TypeResolver* const resolver =
      util::NewTypeResolverForDescriptorPool(
          kPrefix, google::protobuf::DescriptorPool::generated_pool());
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  std::string binary;
  const auto status = util::JsonToBinaryString(
      resolver, absl::StrCat(kPrefix, "/", type.full_name()),
      {json.data(), json.size()}, &binary, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the body is not the JSON of a ", type.name(), ": ",
                     std::string(status.message()).substr(0, 500)));
  }
  rpc::MessageBounds memory = bounds;
  memory.max_bytes = binary.size();
  OPTFARM_RETURN_IF_ERROR(rpc::ParsedBytes(type, binary, memory).status());
  if (message->ParseFromString(binary)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the body is not the JSON of a ", type.name()));
}

}  // namespace optfarm::http
